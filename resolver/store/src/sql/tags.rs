//! Tags and their links.

use std::collections::{BTreeSet, HashMap};

use codes::LinkId;
use links::{Link, Record, Tag, api_key::ApiKeyId, audit::Action, nfc, search_key, tag_spellings};
use serde_json::json;

use super::{
    Dialect, ROWS_AT_ONCE, Row, Sql, Value, audit::note, details::DOMAIN_OR_DEFAULT, insert_numbers, places,
};
use crate::{Renamed, Result, TagCount, Visible};

/// Links of a deleted tag that are removed in one step.
const GONE_LINKS: i64 = 2_000;

pub(super) async fn set_tags(sql: &mut dyn Sql, id: LinkId, tags: &[Tag]) -> Result<()> {
    sql.query("DELETE FROM link_tag WHERE link_id = $1", &[Value::Int(id.get())]).await?;
    if tags.is_empty() {
        note_changes(sql, &[id]).await?;
    }
    add_tags(sql, id, tags).await
}

/// Adds tags to a link that has none of them.
pub(super) async fn add_tags(sql: &mut dyn Sql, id: LinkId, tags: &[Tag]) -> Result<()> {
    add_tags_to_all(sql, &[(id, tags)]).await.map(drop)
}

/// Adds tags to links that have none of them. Returns the numbers of each link's tags.
pub(super) async fn add_tags_to_all(sql: &mut dyn Sql, links: &[(LinkId, &[Tag])]) -> Result<Vec<Vec<i64>>> {
    let pairs: Vec<(LinkId, &Tag)> =
        links.iter().flat_map(|(id, tags)| tags.iter().map(move |tag| (*id, tag))).collect();
    let numbers = tag_links(sql, &pairs).await?;
    let tagged = links.iter().filter(|(_, tags)| !tags.is_empty());
    let tagged: Vec<LinkId> = tagged.map(|(id, _)| *id).collect();
    note_changes(sql, &tagged).await?;
    let numbers_of_link = |(_, tags): &(LinkId, &[Tag])| {
        let numbers = tags.iter().filter_map(|tag| numbers.get(&*nfc(tag.as_str())).copied());
        numbers.collect::<BTreeSet<i64>>().into_iter().collect()
    };
    Ok(links.iter().map(numbers_of_link).collect())
}

/// Adds tags to links, and returns the numbers of the tags. The caller notes that the tags of these
/// links have changed.
pub(super) async fn tag_links(sql: &mut dyn Sql, pairs: &[(LinkId, &Tag)]) -> Result<HashMap<String, i64>> {
    let names: BTreeSet<String> = pairs.iter().map(|(_, tag)| nfc(tag.as_str()).into_owned()).collect();
    let numbers = numbers_of(sql, &names).await?;
    let number = |tag: &Tag| numbers.get(&*nfc(tag.as_str())).copied();
    let mut rows: Vec<[i64; 2]> =
        pairs.iter().filter_map(|(id, tag)| Some([number(tag)?, id.get()])).collect();
    // In the order of the index, whose pages are then changed one after the other.
    rows.sort_unstable();
    // A link may have the tag in another spelling, which was changed above.
    let then = "ON CONFLICT (tag_id, link_id) DO NOTHING";
    insert_numbers(sql, "INSERT INTO link_tag (tag_id, link_id)", &rows, then).await?;
    Ok(numbers)
}

/// Removes all tags of links. The caller notes that.
pub(super) async fn untag_links(sql: &mut dyn Sql, ids: &[LinkId]) -> Result<()> {
    let remove = format!("DELETE FROM link_tag WHERE {}", sql.dialect().among("link_id", "$1"));
    sql.query(&remove, &[Value::ids(ids)]).await.map(drop)
}

/// Notes that the tags of links have changed. The counters of visits follow later.
pub(super) async fn note_changes(sql: &mut dyn Sql, ids: &[LinkId]) -> Result<()> {
    let rows: Vec<[i64; 1]> = ids.iter().map(|id| [id.get()]).collect();
    insert_numbers(sql, "INSERT INTO tag_change (link_id)", &rows, "").await
}

/// Returns the number of a tag as [`numbers_of`] does.
pub(super) async fn number_of(sql: &mut dyn Sql, tag: &Tag) -> Result<Option<i64>> {
    let name = nfc(tag.as_str()).into_owned();
    Ok(numbers_of(sql, &BTreeSet::from([name])).await?.into_values().next())
}

/// Returns the numbers of tags, and protects these from renaming and deletion until the transaction
/// ends. Tags that do not exist are added.
///
/// A tag that exists is only protected, so that creates with the same tags do not wait for each
/// other. New ones are added in their order: two transactions with the same ones in different
/// orders could deadlock.
async fn numbers_of(sql: &mut dyn Sql, names: &BTreeSet<String>) -> Result<HashMap<String, i64>> {
    for name in names.iter().filter(|name| !name.is_ascii()) {
        respell(sql, name).await?;
    }
    let mut numbers: HashMap<String, i64> = HashMap::with_capacity(names.len());
    for adds in [false, true] {
        let missing = names.iter().filter(|name| !numbers.contains_key(*name));
        let missing: Vec<Value> = missing.cloned().map(Value::Text).collect();
        for names in missing.chunks(ROWS_AT_ONCE) {
            let statement =
                if adds { add_names(names.len()) } else { keep_names(sql.dialect(), names.len()) };
            for row in sql.query(&statement, names).await? {
                numbers.insert(row.text(1)?.to_owned(), row.int(0)?);
            }
        }
    }
    Ok(numbers)
}

fn keep_names(dialect: Dialect, count: usize) -> String {
    let protect = dialect.for_key_share();
    format!("SELECT id, name FROM tag WHERE name IN ({}) ORDER BY name {protect}", places(1, count))
}

fn add_names(count: usize) -> String {
    let rows: Vec<String> = (1..=count).map(|place| format!("(${place})")).collect();
    // The update changes nothing, but protects a tag that others have added meanwhile.
    format!(
        "INSERT INTO tag (name) VALUES {} ON CONFLICT (name) DO UPDATE SET name = excluded.name
         RETURNING id, name",
        rows.join(", ")
    )
}

/// Renames a tag that an earlier version stored in another spelling, so that links with both have
/// one tag.
async fn respell(sql: &mut dyn Sql, name: &str) -> Result<()> {
    let respell = "UPDATE tag SET name = $1
                   WHERE name = $2 AND NOT EXISTS (SELECT 1 FROM tag AS other WHERE other.name = $1)";
    for spelling in tag_spellings(name).into_iter().skip(1) {
        let values = [Value::Text(name.to_owned()), Value::Text(spelling.into_owned())];
        sql.query(respell, &values).await?;
    }
    Ok(())
}

/// Returns the parameters for the names that tags may be stored under.
pub(super) fn stored_names<'a>(tags: impl IntoIterator<Item = &'a Tag>) -> Vec<Value> {
    let names = tags.into_iter().flat_map(|tag| tag_spellings(tag.as_str()));
    names.map(|name| Value::Text(name.into_owned())).collect()
}

/// Returns the number of a tag that a visible link has, and the name under which it is stored.
async fn find_tag(sql: &mut dyn Sql, tag: &Tag, of: &Visible) -> Result<Option<(i64, String)>> {
    for name in tag_spellings(tag.as_str()) {
        let mut values = vec![Value::Text(name.to_string())];
        let (links, conditions) = visible_only(of, &mut values);
        let select = format!("SELECT tag.id FROM tag {links} WHERE tag.name = $1{conditions} LIMIT 1");
        if let Some(id) = sql.number(&select, &values).await? {
            return Ok(Some((id, name.into_owned())));
        }
    }
    Ok(None)
}

pub(crate) async fn tag_id(sql: &mut dyn Sql, tag: &Tag, of: &Visible) -> Result<Option<i64>> {
    Ok(find_tag(sql, tag, of).await?.map(|(id, _)| id))
}

/// Returns the tags of links, each link's tags sorted.
pub(super) async fn tags_of(sql: &mut dyn Sql, ids: &[LinkId]) -> Result<HashMap<LinkId, Vec<Tag>>> {
    let mut found = HashMap::<LinkId, Vec<Tag>>::new();
    if ids.is_empty() {
        return Ok(found);
    }
    let select = format!(
        "SELECT link_tag.link_id, tag.name FROM link_tag JOIN tag ON tag.id = link_tag.tag_id
         WHERE {} ORDER BY tag.name",
        sql.dialect().among("link_tag.link_id", "$1")
    );
    for row in sql.query(&select, &[Value::ids(ids)]).await? {
        found.entry(LinkId::from_stored(row.int(0)?)).or_default().push(Tag::from_stored(row.text(1)?));
    }
    Ok(found)
}

pub(super) async fn with_tags(sql: &mut dyn Sql, links: Vec<Link>) -> Result<Vec<Record>> {
    let ids: Vec<LinkId> = links.iter().map(|link| link.id).collect();
    let mut tags = tags_of(sql, &ids).await?;
    let record = |link: Link| Record { tags: tags.remove(&link.id).unwrap_or_default(), link };
    Ok(links.into_iter().map(record).collect())
}

pub(crate) async fn tags_of_link(sql: &mut dyn Sql, id: LinkId) -> Result<Vec<Tag>> {
    Ok(tags_of(sql, &[id]).await?.remove(&id).unwrap_or_default())
}

pub(crate) async fn tags(
    sql: &mut dyn Sql,
    search: Option<&str>,
    most: usize,
    of: &Visible,
) -> Result<Vec<TagCount>> {
    let mut values = vec![Value::Text(search_key(search.unwrap_or("")).into_owned())];
    let (links, conditions) = visible_only(of, &mut values);
    values.push(Value::count(most));
    let select = format!(
        "SELECT tag.name, count(link_tag.link_id) FROM tag {links}
         WHERE {}{conditions} GROUP BY tag.name ORDER BY {} LIMIT ${}",
        sql.dialect().contains("tag.name", "$1"),
        sql.dialect().sorted("tag.name"),
        values.len()
    );
    let rows = sql.query(&select, &values).await?;
    let count = |row: &Row| Ok(TagCount { tag: Tag::from_stored(row.text(0)?), links: row.count(1)? });
    rows.iter().map(count).collect()
}

pub(crate) async fn tag_names(sql: &mut dyn Sql, most: usize, of: &Visible) -> Result<Vec<Tag>> {
    let mut values = Vec::new();
    let (_, conditions) = visible_only(of, &mut values);
    // SQLite numbers parameters in the order in which they appear, so this one is the last.
    values.push(Value::count(most));
    let has_link = if conditions.is_empty() {
        String::new()
    } else {
        let links = "FROM link_tag JOIN link ON link.id = link_tag.link_id";
        // EXISTS ends at the first visible link of a tag.
        match sql.is_distributed() {
            false => format!("WHERE EXISTS (SELECT 1 {links} WHERE link_tag.tag_id = tag.id{conditions})"),
            true => format!("WHERE tag.id IN (SELECT link_tag.tag_id {links} WHERE true{conditions})"),
        }
    };
    let select = format!("SELECT tag.name FROM tag {has_link} ORDER BY tag.name LIMIT ${}", values.len());
    let rows = sql.query(&select, &values).await?;
    rows.iter().map(|row| Ok(Tag::from_stored(row.text(0)?))).collect()
}

/// Returns the conditions that keep visible links, each after an AND. Adds their parameters to
/// `values`.
pub(super) fn visible(of: &Visible, values: &mut Vec<Value>) -> String {
    let mut conditions = String::new();
    let domain = of.domain.map(|domain| (DOMAIN_OR_DEFAULT, domain.get()));
    let key = of.created_by.map(|key| ("link.created_by", key.0));
    for (column, value) in domain.into_iter().chain(key) {
        values.push(Value::Int(value));
        conditions.push_str(&format!(" AND {column} = ${}", values.len()));
    }
    conditions
}

/// Returns the joins of a SELECT from the table of tags, and the conditions that keep tags of
/// visible links. Adds the parameters of the conditions to `values`.
pub(super) fn visible_only(of: &Visible, values: &mut Vec<Value>) -> (&'static str, String) {
    let conditions = visible(of, values);
    // If all links are visible, tags without a link are included.
    let links = if conditions.is_empty() {
        "LEFT JOIN link_tag ON link_tag.tag_id = tag.id"
    } else {
        "JOIN link_tag ON link_tag.tag_id = tag.id JOIN link ON link.id = link_tag.link_id"
    };
    (links, conditions)
}

pub(crate) async fn rename_tag(sql: &mut dyn Sql, old: &Tag, new: &Tag, by: ApiKeyId) -> Result<Renamed> {
    let all = Visible::default();
    let Some((_, stored)) = find_tag(sql, old, &all).await? else { return Ok(Renamed::Absent) };
    if old != new && find_tag(sql, new, &all).await?.is_some() {
        return Ok(Renamed::Taken);
    }
    let rename = "UPDATE tag SET name = $1 WHERE name = $2";
    sql.query(rename, &[Value::Text(new.to_string()), Value::Text(stored)]).await?;
    note(sql, by, Action::RenameTag, old.as_str(), Some(json!({ "name": new.as_str() }))).await?;
    Ok(Renamed::Done)
}

/// Links of the tags are removed later, in steps ([`remove_gone_tag`]): a tag may have a million.
pub(crate) async fn delete_tags(sql: &mut dyn Sql, tags: &[Tag], by: ApiKeyId) -> Result<()> {
    if tags.is_empty() {
        return Ok(());
    }
    let values = stored_names(tags);
    let delete = format!("DELETE FROM tag WHERE name IN ({}) RETURNING id", places(1, values.len()));
    for row in sql.query(&delete, &values).await? {
        sql.query("INSERT INTO tag_gone (tag_id) VALUES ($1)", &[Value::Int(row.int(0)?)]).await?;
    }
    for tag in tags {
        note(sql, by, Action::DeleteTag, tag.as_str(), None).await?;
    }
    Ok(())
}

pub(crate) async fn gone_tag(sql: &mut dyn Sql) -> Result<Option<i64>> {
    sql.number("SELECT tag_id FROM tag_gone ORDER BY tag_id LIMIT 1", &[]).await
}

pub(crate) async fn remove_gone_tag(sql: &mut dyn Sql, tag: i64) -> Result<()> {
    let remove = "DELETE FROM link_tag WHERE tag_id = $1 AND link_id IN
         (SELECT link_id FROM link_tag WHERE tag_id = $1 ORDER BY link_id LIMIT $2) RETURNING link_id";
    if sql.query(remove, &[Value::Int(tag), Value::Int(GONE_LINKS)]).await?.is_empty() {
        sql.query("DELETE FROM tag_gone WHERE tag_id = $1", &[Value::Int(tag)]).await?;
    }
    Ok(())
}
