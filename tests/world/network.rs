//! Connections between resolvers and the leading issuer. They break, and lead nowhere while there
//! is no leader.

use std::{
    io,
    sync::{Arc, Mutex},
};

use issuer::embedded::Dialer;
use tokio::{
    io::{DuplexStream, copy_bidirectional},
    sync::{mpsc, watch},
};

/// The network between the resolvers and the leader.
#[derive(Clone)]
pub(super) struct Network {
    leader: Arc<Mutex<Option<Dialer>>>,
    breaks: watch::Sender<u64>,
}

impl Network {
    pub(super) fn new() -> Self {
        Self { leader: Arc::default(), breaks: watch::Sender::new(0) }
    }

    /// Sets the leader that connections lead to, and breaks the present ones.
    pub(super) fn lead(&self, dialer: Option<Dialer>) {
        *self.leader.lock().expect("no code panics while it holds this lock") = dialer;
        self.cut();
    }

    /// Breaks every connection. Messages in transit are lost.
    pub(super) fn cut(&self) {
        self.breaks.send_modify(|breaks| *breaks += 1);
    }

    /// Returns a dialer for one resolver. It works until `is_dead` returns `true`.
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
        Dialer(connections)
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
