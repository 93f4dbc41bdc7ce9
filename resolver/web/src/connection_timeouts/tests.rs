use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    task::JoinHandle,
};

use super::*;

#[tokio::test(start_paused = true)]
async fn half_a_head_is_waited_for_ten_seconds_and_an_idle_connection_for_more() {
    let connections = Arc::new(ThreadConnections::default());
    let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
    let (mut slow, near) = duplex(64);
    let (_silent, other) = duplex(64);
    let serve = |near| {
        let mut watched = connections.track(near);
        let connection = watched.connection();
        let task = tokio::spawn(async move { while watched.read_u8().await.is_ok() {} });
        connections.register(connection, task.abort_handle());
        task
    };
    let (half, idle) = (serve(near), serve(other));
    slow.write_all(b"GET").await.unwrap();
    sleep(Duration::from_secs(9)).await;
    assert!(!half.is_finished());
    slow.write_all(b" /").await.unwrap();
    sleep(Duration::from_secs(4)).await;
    assert!(half.is_finished(), "each byte does not give it more time");
    sleep(Duration::from_secs(50)).await;
    assert!(!idle.is_finished());
    sleep(Duration::from_secs(20)).await;
    assert!(idle.is_finished());
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn the_idlest_makes_room_and_silent_ones_before_those_that_were_used() {
    let connections = Arc::new(ThreadConnections::default());
    let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
    let serve = |is_used: bool| {
        let (far, near) = duplex(64);
        let mut watched = connections.track(near);
        let connection = watched.connection();
        let task = tokio::spawn(async move {
            if is_used {
                watched.write_all(b"an answer").await.unwrap();
            }
            let _ = watched.read_u8().await;
        });
        connections.register(connection, task.abort_handle());
        (far, task)
    };
    let used = serve(true);
    sleep(Duration::from_secs(5)).await;
    let silent = serve(false);
    sleep(Duration::from_secs(2)).await;
    let (gone, later, newest) = (serve(false), serve(false), serve(false));
    // A connection that has ended by itself frees no slot.
    gone.1.abort();
    sleep(Duration::from_millis(1)).await;
    let ends = [(&silent, [&later, &newest]), (&later, [&used, &newest]), (&newest, [&used, &used])];
    for (ended, others) in ends {
        assert_eq!(connections.close_idlest(), 1);
        sleep(Duration::from_millis(1)).await;
        assert!(ended.1.is_finished() && others.iter().all(|(_, task)| !task.is_finished()));
    }
    assert_eq!([connections.close_idlest(), connections.close_idlest()], [1, 0]);
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_is_read_again_and_counts_as_half_a_head() {
    let connections = Arc::new(ThreadConnections::default());
    let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
    let (_slow, near) = duplex(64);
    let mut watched = connections.track(near);
    let connection = watched.connection();
    watched.write_all(b"an answer to what came before").await.unwrap();
    watched.unread(b"GE".to_vec());
    let mut read = [0; 2];
    assert_eq!(
        (watched.read(&mut read[..1]).await.unwrap(), watched.read(&mut read[1..]).await.unwrap()),
        (1, 1)
    );
    assert_eq!(&read, b"GE");
    let task = tokio::spawn(async move { watched.read_u8().await });
    connections.register(connection, task.abort_handle());
    sleep(Duration::from_secs(15)).await;
    assert!(task.is_finished());
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_asked_for_is_no_late_head() {
    let connections = Arc::new(ThreadConnections::default());
    let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
    let (mut client, near) = duplex(64);
    let mut watched = connections.track(near);
    let connection = watched.connection();
    let served = connection.clone();
    let task = tokio::spawn(async move {
        assert_eq!(watched.read_u8().await.unwrap(), b'H');
        let serving = served.mark_serving();
        watched.write_all(b"continue").await.unwrap();
        let body = async { while watched.read_u8().await.unwrap() != b'.' {} };
        served.scope(from_client(body)).await;
        drop(serving.begin_answer());
        watched.write_all(b"answer").await.unwrap();
        while watched.read_u8().await.is_ok() {}
    });
    let handle = connections.register(connection, task.abort_handle());
    client.write_all(b"H").await.unwrap();
    for _ in 0..10 {
        sleep(Duration::from_secs(9)).await;
        client.write_all(b"body").await.unwrap();
    }
    assert!(handle.idleness().is_some(), "while it is waited for, the connection makes room");
    client.write_all(b".").await.unwrap();
    sleep(Duration::from_secs(5)).await;
    client.write_all(b"half a head").await.unwrap();
    assert!(!task.is_finished());
    sleep(Duration::from_secs(15)).await;
    assert!(task.is_finished(), "the next request's head has to come in time");
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_while_its_answer_goes_lives_for_as_long_as_anything_moves() {
    let connections = Arc::new(ThreadConnections::default());
    let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
    let (mut client, near) = duplex(64);
    let mut watched = connections.track(near);
    let connection = watched.connection();
    let _serving = connection.mark_streaming();
    let task = tokio::spawn(async move {
        while watched.read_u8().await.is_ok() {
            watched.write_all(b"!").await.unwrap();
        }
    });
    connections.register(connection, task.abort_handle());
    for _ in 0..5 {
        client.write_all(b"item").await.unwrap();
        sleep(Duration::from_secs(40)).await;
    }
    assert!(!task.is_finished());
    sleep(Duration::from_secs(60)).await;
    assert!(task.is_finished(), "nothing has moved");
    watching.abort();
}

/// Returns a connection whose request is under way, with its other end.
fn begun(connections: &Arc<ThreadConnections>) -> (DuplexStream, TimedStream<DuplexStream>, Serving) {
    let (far, near) = duplex(64);
    let watched = connections.track(near);
    let serving = watched.connection().mark_serving();
    (far, watched, serving)
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_owes_a_body_makes_room_before_one_that_was_used() {
    let connections = Arc::new(ThreadConnections::default());
    let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
    let owe = || {
        let (far, mut near, serving) = begun(&connections);
        let connection = near.connection();
        let owing = connection.clone();
        let task = tokio::spawn(async move {
            let _serving = serving;
            near.write_all(b"100 Continue").await.unwrap();
            owing.scope(from_client(near.read_u8())).await.unwrap();
            std::future::pending::<()>().await;
        });
        connections.register(connection, task.abort_handle());
        (far, task)
    };
    let (mut sent, served) = owe();
    sleep(Duration::from_secs(100)).await;
    assert!(!served.is_finished(), "the pace of the body ends it, and not the connections");
    sent.write_all(b".").await.unwrap();
    let (_far, mut near, serving) = begun(&connections);
    let connection = near.connection();
    drop(serving.begin_answer());
    near.write_all(b"an answer").await.unwrap();
    let used = tokio::spawn(async move { near.read_u8().await });
    connections.register(connection, used.abort_handle());
    sleep(Duration::from_secs(5)).await;
    let (_silent, owing) = owe();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(connections.close_idlest(), 1);
    sleep(Duration::from_millis(1)).await;
    assert!(owing.is_finished() && !used.is_finished());
    assert_eq!(
        [connections.close_idlest(), connections.close_idlest()],
        [1, 0],
        "a request whose body has come is served"
    );
    assert!(!served.is_finished());
    watching.abort();
}

#[tokio::test]
async fn a_piece_that_is_no_longer_waited_for_is_not_owed() {
    let connections = Arc::new(ThreadConnections::default());
    let (_far, near, _serving) = begun(&connections);
    let connection = near.connection();
    let state = || connection.0.activity.load(Ordering::Relaxed);
    {
        let mut piece = pin!(connection.scope(from_client(std::future::pending::<()>())));
        assert!(futures_util::poll!(&mut piece).is_pending());
        assert_eq!(state(), BODY);
    }
    assert_eq!(state(), BUSY);
    connection.scope(from_client(std::future::ready(()))).await;
    from_client(std::future::ready(())).await;
    assert_eq!(state(), BUSY);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_under_way_between_its_pieces_and_rests_while_it_is_not_taken() {
    let connections = Arc::new(ThreadConnections::default());
    let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
    let (mut client, mut near, serving) = begun(&connections);
    let connection = near.connection();
    let answering = serving.begin_answer();
    let (pieces, mut coming) = tokio::sync::mpsc::channel::<&[u8]>(1);
    let task = tokio::spawn(async move {
        while let Some(piece) = coming.recv().await {
            near.write_all(piece).await.unwrap();
        }
        drop(answering);
        let _ = near.read_u8().await;
    });
    let handle = connections.register(connection, task.abort_handle());
    let mut taken = [0; 64];
    for _ in 0..2 {
        pieces.send(&[b'x'; 64]).await.unwrap();
        client.read_exact(&mut taken).await.unwrap();
        sleep(Duration::from_secs(100)).await;
        assert_eq!(handle.idleness(), None, "the next piece is ours to bring");
    }
    pieces.send(&[b'x'; 128]).await.unwrap();
    sleep(Duration::from_secs(50)).await;
    assert!(handle.idleness().is_some_and(|idleness| idleness.is_used), "the client does not read");
    client.read_exact(&mut taken).await.unwrap();
    sleep(Duration::from_secs(50)).await;
    assert_eq!(handle.idleness(), None, "it has read on");
    assert!(!task.is_finished());
    drop(pieces);
    sleep(Duration::from_secs(1)).await;
    assert!(handle.idleness().is_some(), "the answer has ended");
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_taken_ends_its_connection() {
    let connections = Arc::new(ThreadConnections::default());
    let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
    let (_deaf, mut near, serving) = begun(&connections);
    let connection = near.connection();
    let answering = serving.begin_answer();
    let task = tokio::spawn(async move {
        let _ = near.write_all(&[b'x'; 128]).await;
        drop(answering);
    });
    connections.register(connection, task.abort_handle());
    sleep(Duration::from_secs(70)).await;
    assert!(!task.is_finished());
    sleep(Duration::from_secs(10)).await;
    assert!(task.is_finished());
    watching.abort();
}

/// Returns a connection that requests share, with its other end and its task.
fn shared(
    connections: &Arc<ThreadConnections>,
) -> (DuplexStream, Connection, ConnectionHandle, JoinHandle<()>) {
    let (far, near) = duplex(64);
    let mut watched = connections.track(near);
    let connection = watched.connection();
    connection.mark_shaken(true);
    let task = tokio::spawn(async move {
        while watched.read_u8().await.is_ok() {
            watched.write_all(b"pong").await.unwrap();
        }
    });
    let handle = connections.register(connection.clone(), task.abort_handle());
    (far, connection, handle, task)
}

#[tokio::test(start_paused = true)]
async fn a_shared_connection_rests_when_the_last_of_its_answers_is_taken_and_pings_keep_it_not() {
    let connections = Arc::new(ThreadConnections::default());
    let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
    let (mut client, connection, handle, task) = shared(&connections);
    let requests = [connection.mark_serving(), connection.mark_serving()];
    sleep(Duration::from_secs(100)).await;
    assert_eq!(handle.idleness(), None, "an answer is ours to bring");
    let [first, second] = requests.map(Serving::begin_answer);
    drop(first);
    second.note_wait();
    sleep(Duration::from_secs(100)).await;
    assert_eq!(handle.idleness(), None, "the next piece is ours to bring");
    drop(second);
    assert!(handle.idleness().is_some_and(|idleness| idleness.is_used));
    for _ in 0..7 {
        assert!(!task.is_finished());
        client.write_all(b"p").await.unwrap();
        sleep(Duration::from_secs(12)).await;
    }
    assert!(task.is_finished());
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_gives_no_room_for_an_answer_is_not_waited_for() {
    let connections = Arc::new(ThreadConnections::default());
    let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
    let (_client, connection, handle, task) = shared(&connections);
    let _answer = connection.mark_serving().begin_answer();
    sleep(Duration::from_secs(60)).await;
    assert!(handle.idleness().is_some(), "it makes room for others");
    assert!(!task.is_finished());
    sleep(Duration::from_secs(20)).await;
    assert!(task.is_finished());
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn half_a_handshake_has_the_time_of_a_head_and_makes_room_first() {
    let connections = Arc::new(ThreadConnections::default());
    let watching = tokio::spawn(Arc::clone(&connections).enforce_timeouts());
    let (mut client, near) = duplex(64);
    let mut watched = connections.track(near);
    let connection = watched.connection();
    connection.mark_handshake();
    let task = tokio::spawn(async move {
        watched.read_u8().await.unwrap();
        watched.write_all(b"hello").await.unwrap();
        let _ = watched.read_u8().await;
    });
    let handle = connections.register(connection, task.abort_handle());
    client.write_all(b"h").await.unwrap();
    sleep(Duration::from_secs(8)).await;
    assert!(handle.idleness().is_some_and(|idleness| !idleness.is_used));
    sleep(Duration::from_secs(4)).await;
    assert!(task.is_finished());
    watching.abort();
}
