//! Changes of a list of rules: what a form asks for, and the list that it makes.

use app::{
    FieldErrors,
    redirect_rules::{ConditionFields, RuleFields},
};
use links::{Condition, Rule};

use crate::form::Form;

/// A change of a list of rules. Places are counted from 0.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) rules: Vec<RuleFields>,
    /// The place of the changed rule after the change; `None` if it is gone.
    pub(super) place: Option<usize>,
    /// The form that the values of the change were typed into; `None` for a button alone.
    pub(super) typed_in: Option<TypedIn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypedIn {
    /// That of another rule.
    NewRule,
    /// That of another condition of the rule in this place, which becomes its last one.
    Condition(usize),
    LongUrl(usize),
}

impl Change {
    /// Applies the change that a form asks for to the stored rules; `None` if it asks for none, or
    /// names a place that does not exist. Forms count from 1.
    pub(super) fn read(form: &Form, stored: &[Rule]) -> Option<Self> {
        let number = |name: &str| form.filled(name)?.parse::<usize>().ok()?.checked_sub(1);
        let mut rules: Vec<RuleFields> = stored.iter().map(fields).collect();
        if form.is_on("deleteCondition") {
            let place = number("rule")?;
            remove(rules.get_mut(place)?.conditions.as_mut()?, number("deleteCondition")?)?;
            return Some(Self { rules, place: Some(place), typed_in: None });
        }
        let (place, typed_in) = match form.get("do")? {
            "up" => {
                let above = number("rule")?.checked_sub(1)?;
                rules.get_mut(above..=above + 1)?.reverse();
                (Some(above), None)
            }
            "down" => {
                let below = number("rule")?.checked_add(1)?;
                rules.get_mut(below - 1..=below)?.reverse();
                (Some(below), None)
            }
            "delete" => {
                remove(&mut rules, number("rule")?)?;
                (None, None)
            }
            "win" => {
                let winner = number("rule")?;
                rules = with_winner(stored, winner)?.iter().map(fields).collect();
                (None, None)
            }
            "delete-all" => {
                rules.clear();
                (None, None)
            }
            "add-rule" => {
                rules.push(typed_rule(form));
                (Some(stored.len()), Some(TypedIn::NewRule))
            }
            "lead" => {
                let place = number("rule")?;
                rules.get_mut(place)?.long_url = Some(typed(form, "longUrl"));
                (Some(place), Some(TypedIn::LongUrl(place)))
            }
            "add-condition" => {
                let place = number("rule")?;
                rules.get_mut(place)?.conditions.as_mut()?.push(typed_condition(form));
                (Some(place), Some(TypedIn::Condition(place)))
            }
            _ => return None,
        };
        Some(Self { rules, place, typed_in })
    }
}

fn typed(form: &Form, name: &str) -> String {
    form.filled(name).unwrap_or_default().to_owned()
}

fn typed_condition(form: &Form) -> ConditionFields {
    ConditionFields {
        kind: Some(typed(form, "type")),
        match_key: form.owned("matchKey"),
        match_value: form.owned("matchValue"),
        wrong: FieldErrors::default(),
    }
}

/// Returns the rule that a form has, unchecked. It has no condition if none was typed.
fn typed_rule(form: &Form) -> RuleFields {
    let has_condition = ["type", "matchKey", "matchValue"].iter().any(|name| form.filled(name).is_some());
    RuleFields {
        long_url: Some(typed(form, "longUrl")),
        conditions: Some(has_condition.then(|| typed_condition(form)).into_iter().collect()),
        wrong: FieldErrors::default(),
    }
}

/// Returns the rules after a test of several targets, whose visitors are all led by the winner:
/// without its share, and without the rules that had other shares of the same visitors.
fn with_winner(rules: &[Rule], winner: usize) -> Option<Vec<Rule>> {
    let whole = |rule: &Rule| {
        let conditions = rule.conditions.iter().filter(|one| !matches!(one, Condition::Share(_)));
        Rule { conditions: conditions.cloned().collect(), ..rule.clone() }
    };
    let winning = whole(rules.get(winner)?);
    let mut left = Vec::new();
    for (place, rule) in rules.iter().enumerate() {
        if place == winner {
            left.push(winning.clone());
        } else if rule.share() == 0 || whole(rule).conditions != winning.conditions {
            left.push(rule.clone());
        }
    }
    Some(left)
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

    /// Two rules: the first with two conditions, the second without any.
    fn rules() -> Vec<Rule> {
        let condition = |kind, key, value| Condition::parse(kind, key, Some(value)).unwrap();
        let conditions = vec![condition("device", None, "ios"), condition("query-param", Some("k ü"), "a&b")];
        vec![Rule::new(LongUrl::from_stored(A), conditions), Rule::new(LongUrl::from_stored(B), Vec::new())]
    }

    #[test]
    fn the_winner_of_a_test_leads_the_visitors_of_its_other_rules() {
        let condition = |kind, value| Condition::parse(kind, None, Some(value)).unwrap();
        let ios = || condition("device", "ios");
        let rule = |url: &str, conditions: Vec<Condition>| Rule::new(LongUrl::from_stored(url), conditions);
        let stored = [
            rule("https://1.example/", vec![ios(), condition("share", "30")]),
            rule("https://2.example/", vec![condition("share", "20"), ios()]),
            rule("https://3.example/", vec![condition("share", "50")]),
            rule("https://4.example/", vec![ios()]),
        ];
        let won = |number: usize| {
            let form = Form::parse(format!("do=win&rule={number}").as_bytes());
            told(Change::read(&form, &stored).unwrap().rules)
        };
        let [first, third, fourth] = [
            "https://1.example/ device ios share 30",
            "https://3.example/ share 50",
            "https://4.example/ device ios",
        ];
        assert_eq!(won(2), ["https://2.example/ device ios", third, fourth]);
        let second = "https://2.example/ share 20 device ios";
        assert_eq!(won(3), [first, second, "https://3.example/", fourth]);
        assert!(Change::read(&Form::parse(b"do=win&rule=5"), &stored).is_none());
    }

    fn read(form: &str) -> Option<Change> {
        Change::read(&Form::parse(form.as_bytes()), &rules())
    }

    fn told(rules: Vec<RuleFields>) -> Vec<String> {
        let part = |text: Option<String>| text.map(|text| format!(" {text}")).unwrap_or_default();
        let condition = |one: ConditionFields| part(one.kind) + &part(one.match_key) + &part(one.match_value);
        let rule = |rule: RuleFields| {
            rule.long_url.unwrap() + &rule.conditions.unwrap().into_iter().map(condition).collect::<String>()
        };
        rules.into_iter().map(rule).collect()
    }

    #[test]
    fn a_form_makes_the_whole_list_and_says_where_the_changed_rule_is() {
        let (first, second) = (format!("{A} device ios query-param k ü a&b"), B.to_owned());
        let both = || vec![first.clone(), second.clone()];
        let swapped = || vec![second.clone(), first.clone()];
        let of_first = |rest: &str| vec![format!("{A}{rest}"), second.clone()];
        let with = |rule: &str| [both(), vec![rule.to_owned()]].concat();
        for (form, expected, place, typed_in) in [
            ("do=up&rule=2", swapped(), Some(0), None),
            ("do=down&rule=1", swapped(), Some(1), None),
            ("do=delete&rule=1", vec![B.to_owned()], None, None),
            ("do=delete-all", Vec::new(), None, None),
            ("deleteCondition=2&rule=1", of_first(" device ios"), Some(0), None),
            (
                "do=add-condition&rule=2&type=query-param&matchKey=k+%C3%BC&matchValue=a%26b",
                vec![first.clone(), format!("{B} query-param k ü a&b")],
                Some(1),
                Some(TypedIn::Condition(1)),
            ),
            (
                "do=lead&rule=1&longUrl=+https://b.example/",
                vec![first.replace(A, B), second.clone()],
                Some(0),
                Some(TypedIn::LongUrl(0)),
            ),
            (
                "do=add-rule&longUrl=+https://a.example/&type=device&matchKey=&matchValue=ios",
                with(&format!("{A} device ios")),
                Some(2),
                Some(TypedIn::NewRule),
            ),
            // Without any condition, and with one that lacks its type: that is not dropped.
            ("do=add-rule&longUrl=x", with("x"), Some(2), Some(TypedIn::NewRule)),
            ("do=add-rule&longUrl=x&matchValue=ios", with("x  ios"), Some(2), Some(TypedIn::NewRule)),
        ] {
            let change = read(form).unwrap();
            assert_eq!((change.place, change.typed_in), (place, typed_in), "{form}");
            assert_eq!(told(change.rules), expected, "{form}");
        }
    }

    #[test]
    fn a_place_that_does_not_exist_is_no_change() {
        for form in [
            "do=up&rule=0",
            "do=up&rule=1",
            "do=up&rule=3",
            "do=up&rule=x",
            "do=down&rule=2",
            "do=down&rule=18446744073709551615",
            "do=delete",
            "do=delete&rule=3",
            "deleteCondition=3&rule=1",
            "deleteCondition=1&rule=3",
            "do=add-condition&rule=3",
            "do=lead&rule=3",
            "do=other&rule=1",
            "rule=1",
        ] {
            assert!(read(form).is_none(), "{form}");
        }
    }
}
