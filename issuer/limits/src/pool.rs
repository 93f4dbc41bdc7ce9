//! Pools: amounts that are held and given back, divided into shares.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard},
};

use foldhash::quality::RandomState;

/// The account on which an amount is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Account {
    /// A client without a key, or whose key is not known yet, by its [`network`].
    Client(IpAddr),
    /// An API key by its number in the database, wherever it is used.
    Key(i64),
}

impl Account {
    /// Returns the account of the client at this address.
    pub fn client(address: IpAddr) -> Self {
        Self::Client(network(address))
    }
}

/// Returns the address that identifies a client: an IPv4 address, or an IPv6 network of 64 bits.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// The amounts that may be held at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Limit for the whole process.
    pub all: u64,
    /// Limit for all clients without a key together, within `all`.
    pub clients: u64,
    /// Limit for one client without a key.
    pub client: u64,
    /// Limit for one API key.
    pub key: u64,
}

impl Shares {
    /// Returns the maximum that a holder may have while nothing else is held.
    pub(crate) fn own(&self, account: Account) -> u64 {
        match account {
            Account::Client(_) => self.client,
            Account::Key(_) => self.key,
        }
    }
}

/// The share that was used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededShare {
    /// The holder's own share.
    Own,
    /// The share of the process, or of all clients without a key.
    All,
}

/// An amount that is divided into shares, and how much of it each holder has.
pub struct Pool {
    pub(crate) shares: Shares,
    holdings: Mutex<Holdings>,
}

#[derive(Default)]
struct Holdings {
    all: u64,
    clients: u64,
    /// The amount of each holder that has any. It has no more entries than the pool has units.
    by_holder: HashMap<Account, u64, RandomState>,
}

impl Pool {
    /// Creates a pool of which nothing is held yet.
    pub fn new(shares: Shares) -> Arc<Self> {
        Arc::new(Self { shares, holdings: Mutex::default() })
    }

    /// Creates a pool of which all may hold `all`, and each client and each key `client`.
    pub fn of_clients((all, client): (u64, u64)) -> Arc<Self> {
        Self::new(Shares { all, clients: all, client, key: client })
    }

    /// Takes an amount on a holder's account. It is given back when the result is dropped.
    pub fn take(self: &Arc<Self>, account: Account, amount: u64) -> Result<Held, ExceededShare> {
        let mut held = Held { pool: Arc::clone(self), account, amount: 0 };
        held.grow_to(amount)?;
        Ok(held)
    }

    fn holdings(&self) -> MutexGuard<'_, Holdings> {
        self.holdings.lock().expect("no code panics while it holds this lock")
    }
}

impl Holdings {
    fn add(&mut self, shares: &Shares, account: Account, amount: u64) -> Result<(), ExceededShare> {
        let own = self.by_holder.get(&account).copied().unwrap_or(0);
        let is_client = matches!(account, Account::Client(_));
        if amount > shares.own(account).saturating_sub(own) {
            return Err(ExceededShare::Own);
        }
        let is_beyond = |held: u64, share: u64| amount > share.saturating_sub(held);
        if is_beyond(self.all, shares.all) || (is_client && is_beyond(self.clients, shares.clients)) {
            return Err(ExceededShare::All);
        }
        self.all += amount;
        self.clients += if is_client { amount } else { 0 };
        *self.by_holder.entry(account).or_default() += amount;
        Ok(())
    }

    fn remove(&mut self, account: Account, amount: u64) {
        self.all -= amount;
        if matches!(account, Account::Client(_)) {
            self.clients -= amount;
        }
        if let Some(own) = self.by_holder.get_mut(&account) {
            *own -= amount;
            if *own == 0 {
                self.by_holder.remove(&account);
            }
        }
    }
}

/// An amount that is held from a pool. Dropping it gives the amount back.
pub struct Held {
    pool: Arc<Pool>,
    account: Account,
    amount: u64,
}

impl Held {
    /// Returns the maximum that its holder may have.
    pub fn share(&self) -> u64 {
        self.pool.shares.own(self.account)
    }

    /// Raises the amount to `amount`, if that is more than before.
    pub fn grow_to(&mut self, amount: u64) -> Result<(), ExceededShare> {
        let more = amount.saturating_sub(self.amount);
        if more > 0 {
            self.pool.holdings().add(&self.pool.shares, self.account, more)?;
            self.amount += more;
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.pool.holdings().remove(self.account, self.amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Account {
        Account::client([192, 0, 2, last].into())
    }

    #[test]
    fn neither_one_key_nor_all_clients_without_one_can_hold_everything() {
        let pool = Pool::new(Shares { all: 100, clients: 20, client: 15, key: 60 });
        let one = pool.take(client(1), 15).unwrap();
        assert_eq!(pool.take(client(1), 1).err(), Some(ExceededShare::Own));
        assert_eq!(pool.take(client(2), 6).err(), Some(ExceededShare::All), "of all clients");
        let mut key = pool.take(Account::Key(1), 50).unwrap();
        assert_eq!(key.grow_to(61), Err(ExceededShare::Own));
        assert_eq!(key.grow_to(60), Ok(()));
        assert_eq!(pool.take(Account::Key(2), 26).err(), Some(ExceededShare::All));
        let other = pool.take(Account::Key(2), 25).unwrap();
        drop((one, key));
        assert!(pool.take(Account::Key(3), 60).is_ok());
        drop(other);
        let holdings = pool.holdings();
        assert_eq!((holdings.all, holdings.clients, holdings.by_holder.len()), (0, 0, 0));
    }

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_client() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        assert_eq!(network(ip("2001:db8::1")), network(ip("2001:db8::2:1")));
        assert_ne!(network(ip("2001:db8::1")), network(ip("2001:db8:0:1::1")));
        assert_eq!(network(ip("::ffff:192.0.2.1")), ip("192.0.2.1"));
        let pool = Pool::of_clients((10, 1));
        let take = |address| pool.take(Account::client(ip(address)), 1);
        let _one = take("2001:db8::1").unwrap();
        assert_eq!(take("2001:db8::2").err(), Some(ExceededShare::Own));
        assert!(take("2001:db8:1::1").is_ok());
    }
}
