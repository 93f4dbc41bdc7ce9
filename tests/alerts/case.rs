//! A case: an alert, the fault that it is for, and the pages that the fault sends as well.

use futures_util::{FutureExt as _, future::LocalBoxFuture};

use crate::{rules::Name, stage::Stage};

/// Causes the fault, waits with [`Stage::fires`], and ends the fault.
type Act = Box<dyn for<'a> Fn(&'a mut Stage) -> LocalBoxFuture<'a, anyhow::Result<()>>>;

/// A row of the table.
pub(crate) struct Case {
    pub(crate) alert: &'static str,
    pub(crate) severity: &'static str,
    /// The fault that is caused.
    pub(crate) fault: &'static str,
    /// The critical alerts that may fire as well.
    pub(crate) pages: &'static [&'static str],
    pub(crate) act: Act,
}

impl Case {
    /// Creates the case of an alert that wakes somebody up.
    pub(crate) fn page(
        alert: &'static str,
        fault: &'static str,
        act: impl AsyncFn(&mut Stage) -> anyhow::Result<()> + Copy + 'static,
    ) -> Self {
        let act: Act = Box::new(move |stage| async move { act(stage).await }.boxed_local());
        Self { alert, severity: "critical", fault, pages: &[], act }
    }

    /// Creates the case of an alert that waits for working hours.
    pub(crate) fn ticket(
        alert: &'static str,
        fault: &'static str,
        act: impl AsyncFn(&mut Stage) -> anyhow::Result<()> + Copy + 'static,
    ) -> Self {
        Self { severity: "warning", ..Self::page(alert, fault, act) }
    }

    /// Names the critical alerts that the fault sends as well.
    pub(crate) fn beside(self, pages: &'static [&'static str]) -> Self {
        Self { pages, ..self }
    }

    /// Returns the alert's name and severity.
    pub(crate) fn name(&self) -> Name {
        Name { alert: self.alert.to_owned(), severity: self.severity.to_owned() }
    }

    /// Returns whether the person who runs this asked for the case.
    pub(crate) fn is_among(&self, only: &[String]) -> bool {
        only.is_empty() || only.iter().any(|part| self.alert.contains(part.as_str()))
    }
}
