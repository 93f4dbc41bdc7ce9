//! A value made from files, which is made anew when the files change.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::{task::spawn_blocking, time::sleep};

use crate::{
    Certificate, TlsError, TlsFiles, Verify,
    files::{Contents, Pair},
};

/// Interval between two reads of the files. Their contents are compared: Kubernetes replaces a
/// folder by a link to another, which neither the files' times nor their own folder show.
const READ_EVERY: Duration = Duration::from_secs(2);

/// What one reading of the files made.
pub(crate) struct Made<T> {
    pub(crate) config: Arc<T>,
    /// Own certificate, if there is one.
    pub(crate) certificate: Option<Certificate>,
}

/// Makes the value from the contents of the files.
pub(crate) type Make<T> = fn(&TlsFiles, &Contents, Verify) -> Result<Arc<T>, TlsError>;

/// The value, and where it comes from.
pub(crate) struct Reloaded<T> {
    files: TlsFiles,
    verify: Verify,
    make: Make<T>,
    current: ArcSwap<Made<T>>,
}

impl<T: Send + Sync + 'static> Reloaded<T> {
    /// Reads the files now, and again whenever they change. Must be called on a runtime.
    pub(crate) fn start(files: TlsFiles, verify: Verify, make: Make<T>) -> Result<Arc<Self>, TlsError> {
        let contents = files.read()?;
        let made = made(&files, &contents, verify, make)?;
        let reloaded = Arc::new(Self { files, verify, make, current: ArcSwap::from_pointee(made) });
        if reloaded.files != TlsFiles::default() {
            tokio::spawn(watch(Arc::downgrade(&reloaded), contents));
        }
        Ok(reloaded)
    }

    pub(crate) fn config(&self) -> Arc<T> {
        Arc::clone(&self.current.load().config)
    }

    pub(crate) fn certificate(&self) -> Option<Certificate> {
        self.current.load().certificate.clone()
    }

    /// Reads the files. Returns their contents if they have changed and are in use from now on.
    fn read_again(&self, last: &Contents) -> Result<Option<Contents>, TlsError> {
        let contents = self.files.read()?;
        if contents == *last {
            return Ok(None);
        }
        let made = made(&self.files, &contents, self.verify, self.make)?;
        match &made.certificate {
            Some(Certificate { serial, .. }) => tracing::info!(serial, "certificates have changed"),
            None => tracing::info!("certificates have changed"),
        }
        self.current.store(Arc::new(made));
        Ok(Some(contents))
    }
}

fn made<T>(
    files: &TlsFiles,
    contents: &Contents,
    verify: Verify,
    make: Make<T>,
) -> Result<Made<T>, TlsError> {
    let certificate = files.pair(contents)?.map(|(chain, _): Pair| Certificate::read(&chain[0]));
    Ok(Made { config: make(files, contents, verify)?, certificate })
}

/// Reads the files again and again, until the value is dropped.
async fn watch<T: Send + Sync + 'static>(reloaded: Weak<Reloaded<T>>, mut last: Contents) {
    let mut reported = None;
    loop {
        sleep(READ_EVERY).await;
        let Some(reloaded) = reloaded.upgrade() else { return };
        let read = spawn_blocking(move || {
            let outcome = reloaded.read_again(&last);
            (outcome, last)
        });
        let Ok((outcome, before)) = read.await else { return };
        last = before;
        match outcome {
            Ok(Some(contents)) => (last, reported) = (contents, None),
            Ok(None) => reported = None,
            Err(error) if reported.as_ref() == Some(&error) => {}
            Err(error) => {
                tracing::error!(%error, "certificates have changed, and the former ones stay in use");
                reported = Some(error);
            }
        }
    }
}
