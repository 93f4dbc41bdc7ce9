//! A value made from files, which is made anew when the files change.

use std::{
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use arc_swap::ArcSwap;

use crate::{Certificate, FileRole, TlsError, TlsFiles, files::Contents};

/// Interval between two reads of the files. Their contents are compared: Kubernetes replaces a
/// folder by a link to another, which neither the files' times nor their own folder show.
const READ_EVERY: Duration = Duration::from_secs(1);

type Make<T> = Box<dyn Fn(&TlsFiles, &Contents) -> Result<T, TlsError> + Send + Sync>;

/// A configuration for new connections, which follows its files. Cheap to clone.
#[derive(Clone)]
pub struct Reloaded<T>(Arc<Inner<T>>);

/// The value, and where it comes from.
struct Inner<T> {
    files: TlsFiles,
    make: Make<T>,
    /// The value, and the own certificate if there is one.
    current: ArcSwap<(Arc<T>, Option<Certificate>)>,
}

impl<T: Send + Sync + 'static> Reloaded<T> {
    /// Reads the files now, and again whenever they change.
    pub(crate) fn start(
        files: TlsFiles,
        make: impl Fn(&TlsFiles, &Contents) -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Self, TlsError> {
        let (contents, make): (_, Make<T>) = (files.read()?, Box::new(make));
        let current = ArcSwap::from_pointee(made(&files, &contents, &make)?);
        let reloaded = Arc::new(Inner { files, make, current });
        if reloaded.files != TlsFiles::default() {
            let watched = Arc::downgrade(&reloaded);
            // A thread of its own that is never joined: a read may block for ever.
            let spawned = thread::Builder::new().name("certificates".to_owned());
            spawned.spawn(move || watch(&watched, contents)).map_err(|error| TlsError {
                role: FileRole::Certificate,
                path: reloaded.files.certificate.clone().unwrap_or_default(),
                reason: format!("no thread to watch it: {error}"),
            })?;
        }
        Ok(Self(reloaded))
    }

    /// Returns the configuration for the next connection.
    pub fn config(&self) -> Arc<T> {
        Arc::clone(&self.0.current.load().0)
    }

    /// Returns the own certificate, if there is one.
    pub fn certificate(&self) -> Option<Certificate> {
        self.0.current.load().1.clone()
    }
}

impl<T> Inner<T> {
    fn replace(&self, contents: &Contents) -> Result<(), TlsError> {
        let made = made(&self.files, contents, &self.make)?;
        let serial = made.1.as_ref().map(|certificate| certificate.serial.clone());
        tracing::info!(serial, "certificates have changed");
        self.current.store(Arc::new(made));
        Ok(())
    }
}

fn made<T>(
    files: &TlsFiles,
    contents: &Contents,
    make: &Make<T>,
) -> Result<(Arc<T>, Option<Certificate>), TlsError> {
    let certificate = files.pair(contents)?.map(|(chain, _)| Certificate::read(&chain[0]));
    Ok((Arc::new(make(files, contents)?), certificate))
}

/// Reads the files again and again, until the value is dropped. Contents are used once they were
/// read twice: a file may be half written.
fn watch<T>(reloaded: &Weak<Inner<T>>, mut used: Contents) {
    let (mut seen, mut reported) = (None, None);
    loop {
        thread::sleep(READ_EVERY);
        let Some(reloaded) = reloaded.upgrade() else { return };
        let outcome = match reloaded.files.read() {
            Ok(contents) if contents == used => Ok(()),
            Ok(contents) if seen.as_ref() == Some(&contents) => {
                reloaded.replace(&contents).map(|()| used = contents)
            }
            Ok(contents) => {
                seen = Some(contents);
                continue;
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => reported = None,
            Err(error) if reported.as_ref() == Some(&error) => {}
            Err(error) => {
                tracing::error!(%error, "certificates have changed, and the former ones stay in use");
                reported = Some(error);
            }
        }
    }
}
