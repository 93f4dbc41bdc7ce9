//! Marks of busy quarter hours.

use codes::LinkId;
use visit_store::{Marks, MarksKey, RowQuery, VisitStore};
use visits::{QUARTER, Subject, VisitId};

use super::{Visit, noon, register, store_all};

/// Rows of the quarter hour: more than twice the distance of marks.
const COUNT: i64 = 17_500;

pub(crate) async fn marks_are_the_rows_at_every_8192nd_place(store: &dyn VisitStore) {
    let mut producer = register(store, 1).await;
    let visit = |number: i64| Visit {
        is_bot: number % 20 == 0,
        visitor: number.unsigned_abs() % 40,
        ..Visit::of(1 + number % 2, noon(1) + number * 50_000)
    };
    let visits: Vec<Visit> = (0..COUNT).map(visit).collect();
    for part in visits.chunks(5_000) {
        store_all(store, &mut producer, part).await;
    }
    // The neighbours of the quarter hour are not part of it.
    let around = [Visit::of(1, noon(1) - 1), Visit::of(1, noon(1) + QUARTER)];
    store_all(store, &mut producer, &around).await;
    let link = Subject::Link(LinkId::from_stored(2));
    for (subject, people_only, total, marks) in [
        (Subject::All(None), false, COUNT, 3),
        (Subject::All(None), true, COUNT - COUNT / 20, 3),
        (link, false, COUNT / 2, 2),
        (Subject::Orphans(None, None), false, 0, 0),
    ] {
        let key = MarksKey { subject, people_only, quarter: noon(1) };
        assert_eq!(store.marks(key).await.unwrap(), None);
        let made = store.make_marks(key).await.unwrap();
        assert_eq!((made.total, made.ids.len()), (total.unsigned_abs(), marks), "{key:?}");
        assert_eq!(store.marks(key).await.unwrap(), Some(made.clone()));
        for (place, id) in (0..).zip(&made.ids) {
            let query = RowQuery {
                subject,
                people_only,
                from: VisitId::floor(noon(1)),
                before: VisitId::floor(noon(1) + QUARTER),
                skip: place * Marks::EVERY,
                most: 1,
            };
            assert_eq!(store.rows(&query).await.unwrap()[0].id, *id, "mark {place} of {key:?}");
        }
    }
    // Marks are made anew once they are outdated.
    let key = MarksKey { subject: Subject::All(None), people_only: false, quarter: noon(1) };
    store_all(store, &mut producer, &[Visit::of(1, noon(1) + 25)]).await;
    assert_eq!(store.marks(key).await.unwrap().unwrap().total, COUNT.unsigned_abs());
    let made = store.make_marks(key).await.unwrap();
    assert_eq!(made.total, COUNT.unsigned_abs() + 1);
    assert_eq!(store.marks(key).await.unwrap(), Some(made));
}
