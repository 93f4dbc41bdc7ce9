//! `issuer status`: prints the committed state for a person or a script.

use std::{collections::BTreeSet, error::Error as _, fmt::Write as _, time::Duration};

use daemon::{channel, reasons};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use proto::issuer::v1::{
    GetStatusRequest, GetStatusResponse, HolderStatus, NamespaceStatus, issuer_client::IssuerClient,
};
use serde_json::{Value, json};
use tls::ClientTls;
use tokio::time::timeout;
use tonic::{Code, Status, transport::Endpoint};

use crate::{Error, config::StatusArgs, grpc::LEADER_KEY};

/// Time limit for one issuer: to connect and to answer.
const DEADLINE: Duration = Duration::from_secs(2);

/// The answer of an issuer that does not lead.
#[derive(Debug, PartialEq, Eq)]
pub enum NonLeaderAnswer {
    /// It follows the leader at this URL, or knows of none.
    Follows(Option<String>),
    /// It refused the call, for this reason.
    Refused(String),
    /// It did not answer, for this reason.
    Unreachable(String),
}

/// Asks all issuers side by side, and renders the leader's status as a table or as JSON. Returns
/// [`Error::NoLeader`] with what each issuer said if none answers as the leader.
pub async fn run(args: &StatusArgs) -> Result<String, Error> {
    let tls = args.tls.client(&args.issuer)?;
    for url in &args.issuer {
        endpoint(url)?;
    }
    let status = leader(args, tls.as_ref()).await.map_err(Error::NoLeader)?;
    Ok(if args.json { format!("{:#}\n", to_json(&status)) } else { to_table(&status) })
}

/// Asks the given issuers, and leaders that they point to. The first answer of a leader wins.
async fn leader(
    args: &StatusArgs,
    tls: Option<&ClientTls>,
) -> Result<GetStatusResponse, Vec<(String, NonLeaderAnswer)>> {
    let mut known: BTreeSet<String> = args.issuer.iter().cloned().collect();
    let mut calls: FuturesUnordered<_> = known.iter().cloned().map(|url| ask(url, tls)).collect();
    let mut others = Vec::new();
    while let Some((url, answer)) = calls.next().await {
        let answer = match answer {
            Ok(status) => return Ok(status),
            Err(answer) => answer,
        };
        if let NonLeaderAnswer::Follows(Some(leader)) = &answer {
            // A call that was made over TLS is not repeated in plaintext.
            let is_as_safe = leader.starts_with("https://") || !url.starts_with("https://");
            if is_as_safe && known.insert(leader.clone()) {
                calls.push(ask(leader.clone(), tls));
            }
        }
        others.push((url, answer));
    }
    others.sort_by(|(one, _), (other, _)| one.cmp(other));
    Err(others)
}

fn endpoint(url: &str) -> Result<Endpoint, Error> {
    let made = Endpoint::from_shared(url.to_owned());
    made.map_err(|error| Error::config("--issuer", url, error))
}

async fn ask(url: String, tls: Option<&ClientTls>) -> (String, Result<GetStatusResponse, NonLeaderAnswer>) {
    let answer = async {
        let endpoint = endpoint(&url).map_err(|error| NonLeaderAnswer::Unreachable(reasons(&error)))?;
        let mut client = IssuerClient::new(channel(&endpoint.connect_timeout(DEADLINE), tls));
        let answer = client.get_status(GetStatusRequest {}).await;
        answer.map(tonic::Response::into_inner).map_err(|status| classify(&status))
    };
    let answer = timeout(DEADLINE, answer).await.unwrap_or_else(|_| {
        Err(NonLeaderAnswer::Unreachable(format!("no answer within {} s", DEADLINE.as_secs())))
    });
    (url, answer)
}

fn classify(status: &Status) -> NonLeaderAnswer {
    // Without an answer of the issuer, the status tells of the transport.
    if let Some(source) = status.source() {
        return NonLeaderAnswer::Unreachable(reasons(source));
    }
    match (status.code(), status.metadata().get(LEADER_KEY).map(|value| value.to_str())) {
        (Code::FailedPrecondition, Some(leader)) => {
            NonLeaderAnswer::Follows(leader.ok().filter(|leader| !leader.is_empty()).map(str::to_owned))
        }
        _ => NonLeaderAnswer::Refused(status.message().to_owned()),
    }
}

pub(crate) fn no_leader(issuers: &[(String, NonLeaderAnswer)]) -> String {
    let one = |(url, answer): &(String, NonLeaderAnswer)| match answer {
        NonLeaderAnswer::Follows(Some(leader)) => format!("{url} follows {leader}"),
        NonLeaderAnswer::Follows(None) => format!("{url} knows of no leader"),
        NonLeaderAnswer::Refused(reason) => format!("{url} refused: {reason}"),
        NonLeaderAnswer::Unreachable(reason) => format!("{url} is unreachable: {reason}"),
    };
    issuers.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Renders what each issuer said as JSON, for a script.
pub fn no_leader_json(issuers: &[(String, NonLeaderAnswer)]) -> String {
    let one = |(url, answer): &(String, NonLeaderAnswer)| {
        let (state, leader, reason) = match answer {
            NonLeaderAnswer::Follows(Some(leader)) => ("follower", Some(leader), None),
            NonLeaderAnswer::Follows(None) => ("no leader", None, None),
            NonLeaderAnswer::Refused(reason) => ("refused", None, Some(reason)),
            NonLeaderAnswer::Unreachable(reason) => ("unreachable", None, Some(reason)),
        };
        json!({ "url": url, "state": state, "leader": leader, "reason": reason })
    };
    format!("{:#}\n", json!({ "leader": null, "issuers": issuers.iter().map(one).collect::<Vec<_>>() }))
}

fn to_json(status: &GetStatusResponse) -> Value {
    let namespaces = status.namespaces.iter().map(|namespace| {
        json!({
            "name": namespace.name,
            "capacity": namespace.capacity,
            "high_watermark": namespace.high_watermark,
            "ceiling": namespace.ceiling,
            "allocated": namespace.allocated,
            "used": namespace.used,
            "open": namespace.open,
            "free": namespace.free,
            "leaked": namespace.leaked,
            "burned": namespace.burned,
            "in_hand": namespace.in_hand,
            "exhaustion_seconds": namespace.exhaustion_seconds,
            "reclaimed": namespace.reclaimed,
        })
    });
    let (reservations, holders) = reservations_and_holders(status);
    let holders = holders.iter().map(|holder| {
        let supplies = holder.supplies.iter().map(|supply| {
            let lasts = supply.lasts_ms.map(|ms| ms / 1_000);
            json!({ "namespace": supply.namespace, "in_hand": supply.in_hand, "lasts_seconds": lasts })
        });
        json!({
            "id": holder.id,
            "incarnation": holder.incarnation,
            "alive": holder.alive,
            "blocks": holder.blocks,
            "supplies": supplies.collect::<Vec<_>>(),
        })
    });
    let reservations = reservations.iter().map(|one| json!({ "id": one.id, "blocks": one.blocks }));
    json!({
        "leader": status.leader,
        "epoch": status.epoch,
        "namespaces": namespaces.collect::<Vec<_>>(),
        "holders": holders.collect::<Vec<_>>(),
        "reservations": reservations.collect::<Vec<_>>(),
    })
}

/// Returns the open reservations, which send no beats, and the holders that are processes.
fn reservations_and_holders(status: &GetStatusResponse) -> (Vec<&HolderStatus>, Vec<&HolderStatus>) {
    status.holders.iter().partition(|holder| holder.reserved)
}

fn to_table(status: &GetStatusResponse) -> String {
    let mut text = format!("leader {} in epoch {}\n\n", status.leader, status.epoch);
    let head =
        ["namespace", "capacity", "left", "allocated", "used", "open", "in hand", "free", "leaked", "burned"];
    let rows = status.namespaces.iter().map(|namespace| {
        [
            namespace.name.clone(),
            namespace.capacity.to_string(),
            left(namespace),
            namespace.allocated.to_string(),
            namespace.used.to_string(),
            namespace.open.to_string(),
            namespace.in_hand.to_string(),
            namespace.free.to_string(),
            namespace.leaked.to_string(),
            namespace.burned.to_string(),
        ]
    });
    columns(&mut text, head, rows);
    text.push('\n');
    let (reservations, holders) = reservations_and_holders(status);
    let head = ["holder", "incarnation", "alive", "blocks"];
    let rows = holders.iter().map(|holder| {
        let alive = if holder.alive { "yes" } else { "no" };
        [holder.id.clone(), holder.incarnation.to_string(), alive.to_owned(), holder.blocks.to_string()]
    });
    columns(&mut text, head, rows);
    if !reservations.is_empty() {
        text.push('\n');
        let rows = reservations.iter().map(|holder| [holder.id.clone(), holder.blocks.to_string()]);
        columns(&mut text, ["reservation", "blocks"], rows);
    }
    text
}

/// Returns the share of numbers that no holder has, in percent, rounded down.
fn left(namespace: &NamespaceStatus) -> String {
    let remaining = namespace.capacity.saturating_sub(namespace.high_watermark) + namespace.free;
    let percent = u128::from(remaining) * 100 / u128::from(namespace.capacity.max(1));
    format!("{percent} %")
}

/// Appends a table. The first column is aligned left, the others right.
fn columns<const N: usize>(text: &mut String, head: [&str; N], rows: impl Iterator<Item = [String; N]>) {
    let lines: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..N).map(width).collect();
    for line in &lines {
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            // Writing to a string cannot fail.
            let _ =
                if column == 0 { write!(text, "{cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_reservation_is_shown_as_one_and_not_as_a_dead_holder() {
        let holder = |id: &str, alive, reserved| HolderStatus {
            id: id.to_owned(),
            incarnation: 1,
            alive,
            blocks: 2,
            reserved,
            supplies: Vec::new(),
        };
        let holders = vec![holder("resolver-0", true, false), holder("reservation-7", false, true)];
        let status = GetStatusResponse { leader: "here".to_owned(), epoch: 1, holders, ..Default::default() };
        let json = to_json(&status);
        assert_eq!(json["holders"].as_array().map(Vec::len), Some(1), "{json}");
        assert_eq!(json["reservations"], json!([{ "id": "reservation-7", "blocks": 2 }]));
        let table = to_table(&status);
        let (holders, reservations) = table.split_once("\nreservation ").unwrap_or_else(|| panic!("{table}"));
        assert!(!holders.contains("reservation-7") && reservations.contains("reservation-7"), "{table}");
        let none = to_table(&GetStatusResponse::default());
        assert!(!none.contains("reservation"), "{none}");
    }
}
