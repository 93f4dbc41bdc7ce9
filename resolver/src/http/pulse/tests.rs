use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

#[tokio::test(start_paused = true)]
async fn half_a_head_is_waited_for_ten_seconds_and_an_idle_connection_for_more() {
    let ward = Arc::new(Ward::default());
    let watching = tokio::spawn(Arc::clone(&ward).watch());
    let (mut slow, near) = duplex(64);
    let (_silent, other) = duplex(64);
    let serve = |near| {
        let mut watched = ward.attend(near);
        let patient = watched.patient();
        let task = tokio::spawn(async move { while watched.read_u8().await.is_ok() {} });
        ward.admit(patient, task.abort_handle());
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
    let ward = Arc::new(Ward::default());
    let watching = tokio::spawn(Arc::clone(&ward).watch());
    let serve = |is_used: bool| {
        let (far, near) = duplex(64);
        let mut watched = ward.attend(near);
        let patient = watched.patient();
        let task = tokio::spawn(async move {
            if is_used {
                watched.write_all(b"an answer").await.unwrap();
            }
            let _ = watched.read_u8().await;
        });
        ward.admit(patient, task.abort_handle());
        (far, task)
    };
    let used = serve(true);
    sleep(Duration::from_secs(5)).await;
    let silent = serve(false);
    sleep(Duration::from_secs(2)).await;
    let later = serve(false);
    for (ended, others) in [(&silent, [&used, &later]), (&later, [&used, &used])] {
        assert_eq!(ward.end_idlest(), 1);
        sleep(Duration::from_millis(1)).await;
        assert!(ended.1.is_finished() && others.iter().all(|(_, task)| !task.is_finished()));
    }
    assert_eq!([ward.end_idlest(), ward.end_idlest()], [1, 0]);
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_is_read_again_and_counts_as_half_a_head() {
    let ward = Arc::new(Ward::default());
    let watching = tokio::spawn(Arc::clone(&ward).watch());
    let (_slow, near) = duplex(64);
    let mut watched = ward.attend(near);
    let patient = watched.patient();
    watched.write_all(b"an answer to what came before").await.unwrap();
    watched.unread(b"GE".to_vec());
    let mut read = [0; 2];
    assert_eq!(
        (watched.read(&mut read[..1]).await.unwrap(), watched.read(&mut read[1..]).await.unwrap()),
        (1, 1)
    );
    assert_eq!(&read, b"GE");
    let task = tokio::spawn(async move { watched.read_u8().await });
    ward.admit(patient, task.abort_handle());
    sleep(Duration::from_secs(15)).await;
    assert!(task.is_finished());
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_asked_for_is_no_late_head() {
    let ward = Arc::new(Ward::default());
    let watching = tokio::spawn(Arc::clone(&ward).watch());
    let (mut client, near) = duplex(64);
    let mut watched = ward.attend(near);
    let patient = watched.patient();
    let served = patient.clone();
    let task = tokio::spawn(async move {
        assert_eq!(watched.read_u8().await.unwrap(), b'H');
        served.is_served();
        watched.write_all(b"continue").await.unwrap();
        while watched.read_u8().await.unwrap() != b'.' {}
        served.note_answered();
        watched.write_all(b"answer").await.unwrap();
        while watched.read_u8().await.is_ok() {}
    });
    ward.admit(patient, task.abort_handle());
    client.write_all(b"H").await.unwrap();
    for _ in 0..10 {
        sleep(Duration::from_secs(9)).await;
        client.write_all(b"body").await.unwrap();
    }
    assert_eq!(ward.end_idlest(), 0, "it is no idle one either");
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
    let ward = Arc::new(Ward::default());
    let watching = tokio::spawn(Arc::clone(&ward).watch());
    let (mut client, near) = duplex(64);
    let mut watched = ward.attend(near);
    let patient = watched.patient();
    patient.is_streamed();
    let task = tokio::spawn(async move {
        while watched.read_u8().await.is_ok() {
            watched.write_all(b"!").await.unwrap();
        }
    });
    ward.admit(patient, task.abort_handle());
    for _ in 0..5 {
        client.write_all(b"item").await.unwrap();
        sleep(Duration::from_secs(40)).await;
    }
    assert!(!task.is_finished());
    sleep(Duration::from_secs(60)).await;
    assert!(task.is_finished(), "nothing has moved");
    watching.abort();
}
