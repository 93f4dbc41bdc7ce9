use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    task::JoinHandle,
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::{Connections, ListenerLimits, TimedStream};

type Near = TimedStream<DuplexStream>;

/// A connection whose task a test decides about, with its other end.
struct Served {
    far: DuplexStream,
    connection: Connection,
    task: JoinHandle<()>,
}

/// Returns a listener, whose time limits apply for as long as the second value is kept.
fn listener() -> (Arc<Connections>, AbortOnDropHandle<()>) {
    let connections = Arc::new(Connections::new("test", ListenerLimits::http(99, 0)));
    let timeouts = connections.enforce_timeouts();
    (connections, timeouts)
}

fn serve<F: Future<Output = ()> + Send + 'static>(
    connections: &Arc<Connections>,
    work: impl FnOnce(Near, Connection) -> F,
) -> Served {
    let (far, near) = duplex(64);
    let open = connections.admit([192, 0, 2, 1].into(), None).unwrap();
    let stream = TimedStream::new(near, open, |_| ());
    let connection = stream.connection().clone();
    let task = tokio::spawn(work(stream, connection.clone()));
    connection.set_task(task.abort_handle());
    Served { far, connection, task }
}

async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

impl Served {
    /// Returns whether the task has ended, after it had the time for it.
    async fn has_ended(&self) -> bool {
        sleep(Duration::from_millis(1)).await;
        self.task.is_finished()
    }

    fn is_idle(&self) -> bool {
        !self.connection.idleness(0).is_busy
    }

    fn is_used(&self) -> bool {
        self.connection.idleness(0).is_used
    }
}

async fn read_on(mut near: Near, _: Connection) {
    while near.read_u8().await.is_ok() {}
}

#[tokio::test(start_paused = true)]
async fn half_a_head_is_waited_for_ten_seconds_and_an_idle_connection_for_more() {
    let (connections, _timeouts) = listener();
    let (mut half, idle) = (serve(&connections, read_on), serve(&connections, read_on));
    half.far.write_all(b"GET").await.unwrap();
    seconds(9).await;
    assert!(!half.has_ended().await);
    half.far.write_all(b" /").await.unwrap();
    seconds(4).await;
    assert!(half.has_ended().await, "each byte does not give it more time");
    seconds(50).await;
    assert!(!idle.has_ended().await);
    seconds(20).await;
    assert!(idle.has_ended().await);
}

#[tokio::test(start_paused = true)]
async fn the_idlest_makes_room_and_silent_ones_before_those_that_were_used() {
    let (connections, _timeouts) = listener();
    let used = serve(&connections, async |mut near: Near, _| {
        near.write_all(b"an answer").await.unwrap();
        let _ = near.read_u8().await;
    });
    seconds(5).await;
    let silent = serve(&connections, read_on);
    seconds(2).await;
    let [gone, later, newest] = [(); 3].map(|()| serve(&connections, read_on));
    // A connection that has ended by itself makes no room.
    gone.task.abort();
    assert!(gone.has_ended().await);
    for ended in [&silent, &later, &newest, &used] {
        assert!(!ended.has_ended().await);
        assert_eq!(connections.close_idlest(), 1);
        assert!(ended.has_ended().await);
    }
    assert_eq!(connections.close_idlest(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_is_read_again_and_counts_as_half_a_head() {
    let (connections, _timeouts) = listener();
    let half = serve(&connections, async |mut near: Near, _| {
        near.write_all(b"an answer to what came before").await.unwrap();
        near.unread(b"GE".to_vec());
        assert_eq!([near.read_u8().await.unwrap(), near.read_u8().await.unwrap()], *b"GE");
        let _ = near.read_u8().await;
    });
    seconds(15).await;
    assert!(half.has_ended().await);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_asked_for_is_no_late_head() {
    let (connections, _timeouts) = listener();
    let mut served = serve(&connections, async |mut near: Near, connection: Connection| {
        assert_eq!(near.read_u8().await.unwrap(), b'H');
        let serving = connection.mark_serving();
        near.write_all(b"continue").await.unwrap();
        let body = async { while near.read_u8().await.unwrap() != b'.' {} };
        connection.scope(from_client(body)).await;
        drop(serving.begin_answer());
        near.write_all(b"answer").await.unwrap();
        while near.read_u8().await.is_ok() {}
    });
    served.far.write_all(b"H").await.unwrap();
    for _ in 0..10 {
        seconds(9).await;
        served.far.write_all(b"body").await.unwrap();
    }
    assert!(served.is_idle(), "while it is waited for, the connection makes room");
    served.far.write_all(b".").await.unwrap();
    seconds(5).await;
    served.far.write_all(b"half a head").await.unwrap();
    assert!(!served.has_ended().await);
    seconds(15).await;
    assert!(served.has_ended().await, "the next request's head has to come in time");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_owes_a_body_makes_room_before_one_that_was_used() {
    let (connections, _timeouts) = listener();
    for is_multiplexed in [false, true] {
        let owe = || {
            serve(&connections, async move |mut near: Near, connection: Connection| {
                connection.mark_shaken(is_multiplexed);
                let _serving = connection.mark_serving();
                near.write_all(b"100 Continue").await.unwrap();
                connection.scope(from_client(near.read_u8())).await.unwrap();
                std::future::pending::<()>().await;
            })
        };
        let mut served = owe();
        seconds(100).await;
        assert!(!served.has_ended().await, "the pace of the body ends it, and not the connections");
        served.far.write_all(b".").await.unwrap();
        let used = serve(&connections, async |mut near: Near, connection: Connection| {
            drop(connection.mark_serving().begin_answer());
            near.write_all(b"an answer").await.unwrap();
            let _ = near.read_u8().await;
        });
        seconds(5).await;
        let owing = owe();
        seconds(1).await;
        assert_eq!(connections.close_idlest(), 1);
        assert!(owing.has_ended().await && !used.has_ended().await);
        assert_eq!([connections.close_idlest(), connections.close_idlest()], [1, 0]);
        assert!(!served.has_ended().await, "a request whose body has come is served");
        served.task.abort();
        assert!(served.has_ended().await);
    }
}

#[tokio::test]
async fn a_piece_that_is_no_longer_waited_for_is_not_owed() {
    let (connections, _timeouts) = listener();
    let served = serve(&connections, read_on);
    let _serving = served.connection.mark_serving();
    {
        let mut piece = pin!(served.connection.scope(from_client(std::future::pending::<()>())));
        assert!(futures_util::poll!(&mut piece).is_pending());
        assert!(served.is_idle());
    }
    assert!(!served.is_idle());
    served.connection.scope(from_client(std::future::ready(()))).await;
    from_client(std::future::ready(())).await;
    assert!(!served.is_idle());
}

/// Bytes on a connection are no sign that its answer is taken: they may be pings.
#[tokio::test(start_paused = true)]
async fn an_answer_is_in_progress_between_its_pieces_and_idle_while_it_is_not_taken() {
    let (connections, _timeouts) = listener();
    for is_multiplexed in [false, true] {
        let mut served = serve(&connections, read_on);
        served.connection.mark_shaken(is_multiplexed);
        let requests = [served.connection.mark_serving(), served.connection.mark_serving()];
        seconds(100).await;
        assert!(!served.is_idle(), "an answer is ours to bring");
        let [first, second] = requests.map(Serving::begin_answer);
        drop(first);
        for _ in 0..2 {
            second.note_wait();
            seconds(100).await;
            assert!(!served.is_idle(), "the next piece is ours to bring");
            second.note_piece();
            seconds(50).await;
            assert!(served.is_idle() && served.is_used(), "the client does not take it");
        }
        drop(second);
        for _ in 0..6 {
            assert!(!served.has_ended().await);
            if is_multiplexed {
                served.far.write_all(b"p").await.unwrap();
            }
            seconds(12).await;
        }
        seconds(4).await;
        assert!(served.has_ended().await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_taken_ends_its_connection() {
    let (connections, _timeouts) = listener();
    let deaf = serve(&connections, async |mut near: Near, connection: Connection| {
        let answering = connection.mark_serving().begin_answer();
        let _ = near.write_all(&[b'x'; 128]).await;
        drop(answering);
    });
    seconds(70).await;
    assert!(!deaf.has_ended().await && deaf.is_idle());
    seconds(10).await;
    assert!(deaf.has_ended().await);
}

#[tokio::test(start_paused = true)]
async fn half_a_handshake_has_the_time_of_a_head_and_makes_room_first() {
    let (connections, _timeouts) = listener();
    let mut half = serve(&connections, async |mut near: Near, connection: Connection| {
        connection.mark_handshake();
        near.read_u8().await.unwrap();
        near.write_all(b"hello").await.unwrap();
        let _ = near.read_u8().await;
    });
    assert!(!half.has_ended().await);
    half.far.write_all(b"h").await.unwrap();
    seconds(8).await;
    assert!(half.is_idle() && !half.is_used());
    seconds(4).await;
    assert!(half.has_ended().await);
}
