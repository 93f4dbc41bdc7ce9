//! The commands of an input: what happens to the issuers, and when.

/// A command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Script {
    /// `r`: a holder registers. The argument chooses holder, start and capacity.
    Register,
    /// `a`: a holder asks for a block. The argument chooses holder, namespace and length.
    Allocate,
    /// `o`: as `a`, with a seq or an incarnation that is not the next one.
    AllocateOddly,
    /// `k`: a holder sends a beat. The argument chooses holder, numbers in hand and the last seq.
    Beat,
    /// `b`: a holder returns a block. The argument chooses the block and how much of it is used.
    Return,
    /// `x`: as `b`, and the database has registered later numbers.
    ReturnPast,
    /// `s`: the status is read.
    Status,
    /// `t`: time passes, ten milliseconds for each unit of the argument, and both issuers tick.
    Tick,
    /// `c`: a transaction applies, and its reply arrives.
    Commit,
    /// `l`: a transaction applies, and its reply is lost.
    LoseReply,
    /// `n`: a transaction is lost, so that its outcome is unknown.
    LoseTxn,
    /// `d`: a transaction is late: its outcome is unknown, and it may still apply.
    Delay,
    /// `p`: a late transaction arrives at the ledger.
    Arrive,
    /// `e`: an issuer wins an election.
    Elect,
    /// `g`: as `e`, with the snapshot of an earlier moment.
    ElectStale,
    /// `f`: an issuer hears that it does not lead.
    Follow,
    /// `w`: an issuer wakes after it was suspended.
    Wake,
    /// `q`: an issuer is asked to stop.
    Retire,
    /// `h`: the database history of a holder changes.
    ChangeStore,
    /// `m`: the current ledger is remembered as an earlier moment.
    Remember,
}

impl Script {
    const TABLE: [(u8, Self); 20] = [
        (b'r', Self::Register),
        (b'a', Self::Allocate),
        (b'o', Self::AllocateOddly),
        (b'k', Self::Beat),
        (b'b', Self::Return),
        (b'x', Self::ReturnPast),
        (b's', Self::Status),
        (b't', Self::Tick),
        (b'c', Self::Commit),
        (b'l', Self::LoseReply),
        (b'n', Self::LoseTxn),
        (b'd', Self::Delay),
        (b'p', Self::Arrive),
        (b'e', Self::Elect),
        (b'g', Self::ElectStale),
        (b'f', Self::Follow),
        (b'w', Self::Wake),
        (b'q', Self::Retire),
        (b'h', Self::ChangeStore),
        (b'm', Self::Remember),
    ];

    /// Returns the command of two bytes with its argument. Digits stand for their values.
    pub(crate) fn of([name, argument]: [u8; 2]) -> (Self, usize) {
        let named = Self::TABLE.iter().find(|(one, _)| *one == name);
        let (_, command) = named.unwrap_or(&Self::TABLE[usize::from(name) % Self::TABLE.len()]);
        (*command, usize::from(argument.wrapping_sub(b'0')))
    }
}
