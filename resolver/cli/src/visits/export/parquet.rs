//! Exported visits as a [Parquet](https://parquet.apache.org/docs/file-format/) file.

use std::{
    io::{self, Write},
    mem,
    sync::Arc,
};

use ::parquet::{
    basic::Compression,
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};
use jiff::Timestamp;

use super::{Visit, rows::Rows};

/// The columns. The order is that in which [`Group`] is written.
const SCHEMA: &str = "message visit {
    required int64 date (TIMESTAMP(MILLIS, true));
    required boolean potential_bot;
    optional binary type (UTF8);
    optional binary visited_url (UTF8);
    optional binary redirect_url (UTF8);
    optional binary referer (UTF8);
    optional binary user_agent (UTF8);
    optional binary country_code (UTF8);
    optional binary country_name (UTF8);
    optional binary region_name (UTF8);
    optional binary city_name (UTF8);
    optional binary timezone (UTF8);
    optional double latitude;
    optional double longitude;
}";
/// The number of columns with text.
const TEXTS: usize = 10;
/// The maximum size of a group of rows, in bytes of text.
const GROUP_BYTES: usize = 16 * 1024 * 1024;
/// The maximum number of rows in a group.
const GROUP_ROWS: usize = 100_000;

/// A Parquet file that is being written. It holds one group of rows in memory.
pub(super) struct Parquet<W: Write + Send> {
    file: SerializedFileWriter<W>,
    group: Group,
}

/// A group of rows, by columns.
#[derive(Default)]
struct Group {
    dates: Vec<i64>,
    bots: Vec<bool>,
    texts: [Vec<Option<ByteArray>>; TEXTS],
    degrees: [Vec<Option<f64>>; 2],
    bytes: usize,
}

impl<W: Write + Send> Parquet<W> {
    /// Starts a file.
    pub(super) fn new(to: W) -> io::Result<Self> {
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(plain)?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(to, schema, Arc::new(properties)).map_err(plain)?;
        Ok(Self { file, group: Group::default() })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let group = mem::take(&mut self.group);
        if group.dates.is_empty() {
            return Ok(());
        }
        let mut to = self.file.next_row_group()?;
        write_required::<Int64Type>(&mut to, &group.dates)?;
        write_required::<BoolType>(&mut to, &group.bots)?;
        for texts in group.texts {
            write_optional::<ByteArrayType>(&mut to, texts)?;
        }
        for degrees in group.degrees {
            write_optional::<DoubleType>(&mut to, degrees)?;
        }
        to.close()?;
        Ok(())
    }
}

impl<W: Write + Send> Rows for Parquet<W> {
    fn write(&mut self, visit: &Visit) -> io::Result<()> {
        self.group.push(visit)?;
        if self.group.bytes >= GROUP_BYTES || self.group.dates.len() >= GROUP_ROWS {
            self.write_group().map_err(plain)?;
        }
        Ok(())
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        self.write_group().map_err(plain)?;
        let mut to = self.file.into_inner().map_err(plain)?;
        to.flush()
    }
}

impl Group {
    fn push(&mut self, visit: &Visit) -> io::Result<()> {
        let date: Timestamp =
            visit.date.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.dates.push(date.as_millisecond());
        self.bots.push(visit.potential_bot);
        let place = visit.visit_location.as_ref().filter(|place| !place.is_empty);
        let texts: [Option<&str>; TEXTS] = [
            visit.r#type.as_deref(),
            visit.visited_url.as_deref(),
            visit.redirect_url.as_deref(),
            Some(&visit.referer),
            Some(&visit.user_agent),
            place.map(|place| place.country_code.as_str()),
            place.map(|place| place.country_name.as_str()),
            place.map(|place| place.region_name.as_str()),
            place.map(|place| place.city_name.as_str()),
            place.map(|place| place.timezone.as_str()),
        ];
        for (column, text) in self.texts.iter_mut().zip(texts) {
            // The API has an empty text for what is unknown.
            let text = text.filter(|text| !text.is_empty());
            self.bytes += text.map_or(0, str::len);
            column.push(text.map(ByteArray::from));
        }
        let degrees = [place.map(|place| place.latitude), place.map(|place| place.longitude)];
        for (column, degrees) in self.degrees.iter_mut().zip(degrees) {
            column.push(degrees);
        }
        Ok(())
    }
}

fn write_required<T: DataType>(
    to: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    write_column::<T>(to, values, None)
}

/// Writes a column in which values may be missing: for each row whether there is one, and the values.
fn write_optional<T: DataType>(
    to: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: Vec<Option<T::T>>,
) -> Result<(), ParquetError> {
    let are_there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    write_column::<T>(to, &values, Some(&are_there))
}

fn write_column<T: DataType>(
    to: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    are_there: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("fewer columns than in the schema".to_owned());
    let mut column = to.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, are_there, None)?;
    column.close()
}

fn plain(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use ::parquet::{
        file::reader::{FileReader as _, SerializedFileReader},
        record::RowAccessor as _,
    };
    use bytes::Bytes;

    use super::{super::answer::Location, *};

    #[test]
    fn a_file_of_several_groups_has_all_visits() {
        let visit = |number: usize| Visit {
            date: "2026-11-25T10:00:00+01:00".to_owned(),
            user_agent: format!("{number} {}", "a".repeat(2_000)),
            visit_location: number.is_multiple_of(2).then(|| Location {
                latitude: -23.5,
                city_name: "São Paulo".to_owned(),
                ..Location::default()
            }),
            ..Visit::default()
        };
        let (mut to, count) = (Vec::new(), 10_000);
        let mut rows = Box::new(Parquet::new(&mut to).unwrap());
        for number in 0..count {
            rows.write(&visit(number)).unwrap();
        }
        rows.end().unwrap();
        let file = SerializedFileReader::new(Bytes::from(to)).unwrap();
        assert!(file.num_row_groups() > 1);
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), count);
        for (number, row) in rows.iter().enumerate() {
            assert_eq!(row.get_timestamp_millis(0).unwrap(), 1_795_597_200_000);
            assert!(row.get_string(6).unwrap().starts_with(&format!("{number} a")));
            let city = row.get_string(10).ok().map(String::as_str);
            assert_eq!(city, number.is_multiple_of(2).then_some("São Paulo"));
        }
    }
}
