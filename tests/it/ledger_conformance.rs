//! The conformance suite of the ledgers: the guard on which uniqueness rests holds in etcd and in
//! the file.

use std::time::Duration;

use etcd_client::{Client, PutOptions};
use harness::{EtcdCluster, Scratch};
use issuer::{
    core::{Head, Part},
    ledger::{
        Key, Ledger, Record, Txn, TxnOutcome, Write,
        embedded::EmbeddedLedger,
        etcd::{EtcdLedger, leader_key},
    },
};
use numbers::{Batch, Epoch, Generation, Namespace, Revision, Span, StoreEpoch};

#[tokio::test(flavor = "multi_thread")]
async fn the_file_ledger_keeps_the_guard() {
    let scratch = Scratch::new().unwrap();
    let ledger = EmbeddedLedger::open(&scratch.path().join("ledger.json")).unwrap();
    suite(&ledger, ledger.epoch()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_etcd_ledger_keeps_the_guard() {
    let etcd = EtcdCluster::start(1).await.unwrap();
    let client = Client::connect([etcd.endpoints()], None).await.unwrap();
    let led = client.kv_client().put(leader_key("suite"), "here", Some(PutOptions::new())).await.unwrap();
    let epoch = Epoch(u64::try_from(led.header().unwrap().revision()).unwrap());
    let ledger = EtcdLedger::new(client.clone(), "suite", Duration::from_secs(2));
    suite(&ledger, epoch).await;

    // A rival for the leader key that leads later: the earlier epoch's write is refused.
    client.kv_client().delete(leader_key("suite"), None).await.unwrap();
    client.kv_client().put(leader_key("suite"), "there", None).await.unwrap();
    let head = ledger.load().await.unwrap().head;
    assert!(matches!(ledger.commit(&txn(epoch, head, 99, Vec::new())).await, TxnOutcome::Refused(Some(_))));
}

fn txn(epoch: Epoch, head: Revision, batch: u64, more: Vec<Write>) -> Txn {
    let record = Record::Head(Head { epoch, batch: Batch(batch), ..Head::default() });
    let writes = std::iter::once(Write::Put(record)).chain(more).collect();
    Txn { epoch, head, batch: Batch(batch), writes }
}

fn free(start: u64) -> Record {
    let store = StoreEpoch::new("7001:1").unwrap();
    let part =
        Part { span: Span::new(start, 5).unwrap(), generation: Generation(1), store, contested: false };
    Record::Free(Namespace::new("web").unwrap(), part)
}

async fn suite(ledger: &dyn Ledger, epoch: Epoch) {
    let empty = ledger.load().await.unwrap();
    assert_eq!((empty.head, empty.records.len()), (Revision(0), 0));

    // More keys than one page of the take-over read, in transactions of the maximum size.
    let mut head = Revision(0);
    for batch in 1..=6 {
        let writes = (0..127).map(|n| Write::Put(free(batch * 1_000 + n * 5))).collect();
        let TxnOutcome::Applied(revision) = ledger.commit(&txn(epoch, head, batch, writes)).await else {
            panic!("batch {batch} was not applied");
        };
        assert!(revision > head);
        head = revision;
    }
    let full = ledger.load().await.unwrap();
    assert_eq!((full.head, full.records.len()), (head, 6 * 127 + 1));
    let mut keys: Vec<_> = full.records.iter().map(|record| record.key().encode()).collect();
    keys.dedup();
    assert_eq!(keys.len(), 6 * 127 + 1, "no key comes twice");

    let stale = txn(epoch, Revision(1), 7, vec![Write::Put(free(90_000))]);
    let TxnOutcome::Refused(Some(read)) = ledger.commit(&stale).await else {
        panic!("a stale head was accepted")
    };
    assert_eq!((read.revision, read.head.batch), (head, Batch(6)));
    let rival = txn(Epoch(epoch.0 + 1_000_000), head, 7, vec![Write::Put(free(90_000))]);
    assert!(
        matches!(ledger.commit(&rival).await, TxnOutcome::Refused(Some(_))),
        "another epoch was accepted"
    );

    let delete = txn(epoch, head, 7, vec![Write::Delete(Key::Free(Namespace::new("web").unwrap(), 1_000))]);
    let applied = ledger.commit(&delete).await;
    assert!(matches!(applied, TxnOutcome::Applied(_)), "{applied:?}");
    let TxnOutcome::Refused(Some(read)) = ledger.commit(&delete).await else {
        panic!("a copy applied twice")
    };
    assert_eq!((TxnOutcome::Applied(read.revision), read.head.batch), (applied, Batch(7)));
    assert_eq!(ledger.load().await.unwrap().records.len(), 6 * 127);
}
