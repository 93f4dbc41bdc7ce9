//! Connections between resolvers and the issuer that leads: they break, and lead nowhere while there is none.

use std::{
    io,
    sync::{Arc, Mutex},
};

use issuer::embedded::Dialer;
use tokio::{
    io::{DuplexStream, copy_bidirectional},
    sync::{mpsc, watch},
};

/// Where the leader is, for one resolver.
#[derive(Clone)]
pub(super) struct Network {
    leader: Arc<Mutex<Option<Dialer>>>,
    breaks: watch::Sender<u64>,
}

impl Network {
    pub(super) fn new() -> Self {
        Self { leader: Arc::default(), breaks: watch::Sender::new(0) }
    }

    /// From now on this one leads, or none.
    pub(super) fn lead(&self, dialer: Option<Dialer>) {
        *self.leader.lock().expect("no code panics while it holds this lock") = dialer;
        self.cut();
    }

    /// Every connection breaks: what is on its way is lost.
    pub(super) fn cut(&self) {
        self.breaks.send_modify(|breaks| *breaks += 1);
    }

    /// A way for one resolver, until `is_dead` says that it is gone.
    pub(super) fn dialer(&self, is_dead: impl Fn() -> bool + Send + 'static) -> Dialer {
        let (connections, mut incoming) = mpsc::channel::<io::Result<DuplexStream>>(4);
        let network = self.clone();
        tokio::spawn(async move {
            while let Some(Ok(stream)) = incoming.recv().await {
                let leader = network.leader.lock().expect("no code panics while it holds this lock").clone();
                if let Some(leader) = leader.filter(|_| !is_dead()) {
                    tokio::spawn(carry(stream, leader, network.breaks.subscribe()));
                }
            }
        });
        Dialer::over(connections)
    }
}

async fn carry(mut ours: DuplexStream, leader: Dialer, mut breaks: watch::Receiver<u64>) {
    let Ok(mut theirs) = leader.dial().await else { return };
    tokio::select! {
        biased;
        _ = breaks.changed() => {}
        _ = copy_bidirectional(&mut ours, &mut theirs) => {}
    }
}
