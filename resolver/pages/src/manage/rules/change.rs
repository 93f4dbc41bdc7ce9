//! Changes of a list of rules: what a form asks for, and the list that it makes.

use app::{
    FieldErrors,
    redirect_rules::{ConditionFields, RuleFields},
};
use links::{Condition, Rule};

use crate::form::Form;

/// The fields of another rule or condition, as they were typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Typed {
    /// The long URL; empty for a condition of a rule that has one.
    pub(super) long_url: String,
    /// The type of the condition; empty for none.
    pub(super) kind: String,
    /// The name of a query parameter.
    pub(super) match_key: String,
    /// The value to compare with.
    pub(super) match_value: String,
}

/// A change of a list of rules. Rules and conditions are named by their places, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Moves a rule before the one above it.
    Up(usize),
    /// Moves a rule behind the one below it.
    Down(usize),
    /// Deletes a rule.
    Delete(usize),
    /// Deletes all rules.
    DeleteAll,
    /// Deletes the condition in the second place of the rule in the first one.
    DeleteCondition(usize, usize),
    /// Adds a rule behind the others.
    AddRule(Typed),
    /// Adds a condition to a rule.
    AddCondition(usize, Typed),
    /// Gives a rule another long URL.
    Lead(usize, Typed),
}

impl Typed {
    /// Reads the fields of a form, without white space around their values.
    fn read(form: &Form) -> Self {
        let typed = |name: &str| form.filled(name).unwrap_or_default().to_owned();
        Self {
            long_url: typed("longUrl"),
            kind: typed("type"),
            match_key: typed("matchKey"),
            match_value: typed("matchValue"),
        }
    }

    /// Returns the condition, unchecked.
    fn condition(&self) -> ConditionFields {
        let filled = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        ConditionFields {
            kind: Some(self.kind.clone()),
            match_key: filled(&self.match_key),
            match_value: filled(&self.match_value),
            wrong: FieldErrors::default(),
        }
    }

    /// Returns the rule, unchecked. It has no condition if none was typed.
    fn rule(&self) -> RuleFields {
        let is_typed = [&self.kind, &self.match_key, &self.match_value].iter().any(|text| !text.is_empty());
        RuleFields {
            long_url: Some(self.long_url.clone()),
            conditions: Some(is_typed.then(|| self.condition()).into_iter().collect()),
            wrong: FieldErrors::default(),
        }
    }
}

impl Change {
    /// Reads the change that a form asks for; `None` if it asks for none. Forms count from 1.
    pub(super) fn read(form: &Form) -> Option<Self> {
        let place = |name: &str| form.filled(name)?.parse::<usize>().ok()?.checked_sub(1);
        if form.is_on("deleteCondition") {
            return Some(Self::DeleteCondition(place("rule")?, place("deleteCondition")?));
        }
        Some(match form.get("do")? {
            "up" => Self::Up(place("rule")?),
            "down" => Self::Down(place("rule")?),
            "delete" => Self::Delete(place("rule")?),
            "delete-all" => Self::DeleteAll,
            "add-rule" => Self::AddRule(Typed::read(form)),
            "lead" => Self::Lead(place("rule")?, Typed::read(form)),
            "add-condition" => Self::AddCondition(place("rule")?, Typed::read(form)),
            _ => return None,
        })
    }

    /// Returns the whole list after the change, unchecked; `None` if a place does not exist.
    pub(super) fn apply(&self, rules: &[Rule]) -> Option<Vec<RuleFields>> {
        let mut list: Vec<RuleFields> = rules.iter().map(fields).collect();
        match self {
            Self::Up(place) => list.get_mut(place.checked_sub(1)?..=*place)?.reverse(),
            Self::Down(place) => list.get_mut(*place..=place.checked_add(1)?)?.reverse(),
            Self::Delete(place) => drop(remove(&mut list, *place)?),
            Self::DeleteAll => list.clear(),
            Self::DeleteCondition(place, condition) => {
                let conditions = list.get_mut(*place)?.conditions.as_mut()?;
                drop(remove(conditions, *condition)?);
            }
            Self::AddRule(typed) => list.push(typed.rule()),
            Self::Lead(place, typed) => list.get_mut(*place)?.long_url = Some(typed.long_url.clone()),
            Self::AddCondition(place, typed) => {
                list.get_mut(*place)?.conditions.as_mut()?.push(typed.condition());
            }
        }
        Some(list)
    }

    /// Returns the place before the change of a rule that is in this place after it. A rule that is
    /// added is behind the others in both.
    pub(super) fn place_before(&self, place: usize) -> usize {
        match *self {
            Self::Up(moved) if place == moved => place.saturating_sub(1),
            Self::Up(moved) if place + 1 == moved => moved,
            Self::Down(moved) if place == moved => place + 1,
            Self::Down(moved) if place == moved.saturating_add(1) => moved,
            Self::Delete(deleted) if place >= deleted => place + 1,
            _ => place,
        }
    }

    /// Returns the place that the changed rule then has in a list that had `len` rules; `None` if
    /// it is gone.
    pub(super) fn place(&self, len: usize) -> Option<usize> {
        match self {
            Self::Up(place) => place.checked_sub(1),
            Self::Down(place) => place.checked_add(1),
            Self::Delete(_) | Self::DeleteAll => None,
            Self::DeleteCondition(place, _) | Self::AddCondition(place, _) | Self::Lead(place, _) => {
                Some(*place)
            }
            Self::AddRule(_) => Some(len),
        }
    }
}

/// Removes an item; `None` if there is none in this place.
fn remove<T>(list: &mut Vec<T>, place: usize) -> Option<T> {
    (place < list.len()).then(|| list.remove(place))
}

/// Returns the fields of a stored rule, as the use case takes them.
fn fields(rule: &Rule) -> RuleFields {
    let condition = |condition: &Condition| {
        let (kind, match_key, match_value) = condition.parts();
        let [kind, match_key, match_value] =
            [Some(kind), match_key, match_value].map(|text| text.map(str::to_owned));
        ConditionFields { kind, match_key, match_value, wrong: FieldErrors::default() }
    };
    RuleFields {
        long_url: Some(rule.long_url.as_str().to_owned()),
        conditions: Some(rule.conditions.iter().map(condition).collect()),
        wrong: FieldErrors::default(),
    }
}

#[cfg(test)]
mod tests {
    use links::LongUrl;

    use super::*;

    const A: &str = "https://a.example/";
    const B: &str = "https://b.example/";

    fn condition(kind: &str, key: Option<&str>, value: Option<&str>) -> Condition {
        Condition::parse(kind, key, value).unwrap()
    }

    /// Two rules: the first with two conditions, the second without any.
    fn rules() -> Vec<Rule> {
        let conditions =
            vec![condition("device", None, Some("ios")), condition("query-param", Some("k ü"), Some("a&b"))];
        vec![Rule::new(LongUrl::from_stored(A), conditions), Rule::new(LongUrl::from_stored(B), Vec::new())]
    }

    fn read(form: &str) -> Option<Change> {
        Change::read(&Form::parse(form.as_bytes()))
    }

    /// Returns long URLs and types of conditions after a change.
    fn after(change: &Change) -> Option<Vec<String>> {
        let shown = |rule: RuleFields| {
            let kinds = rule.conditions.unwrap().into_iter().map(|condition| condition.kind.unwrap());
            let parts: Vec<String> = rule.long_url.into_iter().chain(kinds).collect();
            parts.join(" ")
        };
        Some(change.apply(&rules())?.into_iter().map(shown).collect())
    }

    #[test]
    fn a_form_is_read_into_the_change_of_its_button() {
        let typed = |long_url: &str, kind: &str, key: &str, value: &str| Typed {
            long_url: long_url.to_owned(),
            kind: kind.to_owned(),
            match_key: key.to_owned(),
            match_value: value.to_owned(),
        };
        for (form, expected) in [
            ("do=up&rule=2", Some(Change::Up(1))),
            ("do=down&rule=1", Some(Change::Down(0))),
            ("do=delete&rule=1", Some(Change::Delete(0))),
            ("do=delete-all", Some(Change::DeleteAll)),
            ("deleteCondition=2&rule=1", Some(Change::DeleteCondition(0, 1))),
            (
                "do=add-rule&longUrl=+https://a.example/&type=device&matchKey=&matchValue=ios",
                Some(Change::AddRule(typed(A, "device", "", "ios"))),
            ),
            (
                "do=add-condition&rule=3&type=query-param&matchKey=k+%C3%BC&matchValue=a%26b",
                Some(Change::AddCondition(2, typed("", "query-param", "k ü", "a&b"))),
            ),
            ("do=lead&rule=2&longUrl=https://a.example/", Some(Change::Lead(1, typed(A, "", "", "")))),
            ("do=up&rule=0", None),
            ("do=up&rule=x", None),
            ("do=delete", None),
            ("do=other&rule=1", None),
            ("rule=1", None),
        ] {
            assert_eq!(read(form), expected, "{form}");
        }
    }

    #[test]
    fn a_change_makes_the_whole_list() {
        let (first, second) = (format!("{A} device query-param"), B.to_owned());
        let added = |kind: &str| Typed { kind: kind.to_owned(), ..Typed::default() };
        for (change, expected) in [
            (Change::Up(1), vec![second.clone(), first.clone()]),
            (Change::Down(0), vec![second.clone(), first.clone()]),
            (Change::Delete(0), vec![second.clone()]),
            (Change::DeleteAll, Vec::new()),
            (Change::DeleteCondition(0, 0), vec![format!("{A} query-param"), second.clone()]),
            (Change::AddCondition(1, added("city")), vec![first.clone(), format!("{B} city")]),
            (
                Change::Lead(0, Typed { long_url: B.to_owned(), ..Typed::default() }),
                vec![format!("{B} device query-param"), second.clone()],
            ),
            (
                Change::AddRule(Typed { long_url: A.to_owned(), ..Typed::default() }),
                vec![first, second, A.to_owned()],
            ),
        ] {
            assert_eq!(after(&change), Some(expected), "{change:?}");
        }
    }

    #[test]
    fn a_place_that_does_not_exist_is_no_change() {
        for change in [
            Change::Up(0),
            Change::Up(2),
            Change::Down(1),
            Change::Down(usize::MAX),
            Change::Delete(2),
            Change::DeleteCondition(0, 2),
            Change::DeleteCondition(2, 0),
            Change::AddCondition(2, Typed::default()),
            Change::Lead(2, Typed::default()),
        ] {
            assert_eq!(after(&change), None, "{change:?}");
        }
    }

    #[test]
    fn stored_rules_are_read_back_from_their_fields() {
        let parse = |fields: &ConditionFields| {
            let kind = fields.kind.as_deref().unwrap();
            Condition::parse(kind, fields.match_key.as_deref(), fields.match_value.as_deref()).unwrap()
        };
        let back: Vec<Rule> = rules()
            .iter()
            .map(fields)
            .map(|fields| {
                let conditions = fields.conditions.unwrap().iter().map(parse).collect();
                Rule::new(LongUrl::from_stored(fields.long_url.unwrap()), conditions)
            })
            .collect();
        assert_eq!(back, rules());
    }

    #[test]
    fn a_condition_without_a_type_is_not_dropped_if_its_value_was_typed() {
        let typed = Typed { match_value: "ios".to_owned(), ..Typed::default() };
        assert_eq!(typed.rule().conditions.unwrap()[0].kind.as_deref(), Some(""));
        assert!(Typed::default().rule().conditions.unwrap().is_empty());
    }

    #[test]
    fn a_rule_is_found_where_it_was_before() {
        for (change, expected) in [
            (Change::Up(2), [0, 2, 1, 3]),
            (Change::Down(1), [0, 2, 1, 3]),
            (Change::Delete(1), [0, 2, 3, 4]),
            (Change::DeleteCondition(1, 0), [0, 1, 2, 3]),
            (Change::AddRule(Typed::default()), [0, 1, 2, 3]),
        ] {
            assert_eq!([0, 1, 2, 3].map(|place| change.place_before(place)), expected, "{change:?}");
        }
    }

    #[test]
    fn the_page_leads_back_to_the_changed_rule() {
        for (change, place) in [
            (Change::Up(1), Some(0)),
            (Change::Down(0), Some(1)),
            (Change::DeleteAll, None),
            (Change::AddCondition(1, Typed::default()), Some(1)),
            (Change::AddRule(Typed::default()), Some(2)),
        ] {
            assert_eq!(change.place(rules().len()), place, "{change:?}");
        }
    }
}
