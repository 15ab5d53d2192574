//! Who hears what a capture has to say: the console, the metrics file, the service manager.

use std::io;
use std::time::{Duration, Instant};

use super::console;
use super::view::View;
use crate::command::console::Console;
use crate::command::terminal;
use tscap_base::failure::{Context as _, Failure};
use tscap_base::text::numbers::counted;
use tscap_capture::{Event, Metrics, Progress, Ready, Summary};
use tscap_cli::CapturePlan;
use tscap_host::service::Service;

/// How often the service manager gets a status: each one wakes it.
const STATUS_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Reporters<'a> {
    pub console: Console,
    metrics: Option<Metrics>,
    view: Option<View>,
    service: &'a Service,
    status_due: Instant,
}

impl<'a> Reporters<'a> {
    pub fn of(plan: &CapturePlan, service: &'a Service) -> Result<Self, Failure> {
        let metrics = plan.metrics_file.as_deref().map(Metrics::to).transpose();
        Ok(Self {
            console: console::of(plan).context("cannot start a thread")?,
            metrics: metrics.context("cannot start a thread")?,
            view: plan.is_view.then(View::default),
            service,
            status_due: Instant::now(),
        })
    }

    pub fn report(&mut self, event: &Event) {
        match (event, &mut self.view) {
            (Event::Progress(now), Some(view)) => {
                let screen = terminal::width(io::stderr()).unwrap_or_default();
                let screen = (screen, terminal::height(io::stderr()));
                self.console.show(&view.lines(now, screen));
            }
            _ => console::tell(&mut self.console, event),
        }
        if let Event::Progress(now) = event {
            let warning = self.metrics.as_mut().and_then(|it| it.progress(now));
            self.warn(warning);
            if Instant::now() >= self.status_due {
                self.status_due += STATUS_EVERY;
                self.service.status(&status(now));
            }
        }
    }

    /// Somebody has asked for the counts.
    pub fn counts(&mut self, now: &Progress) {
        console::counts(&mut self.console, now);
    }

    pub fn ready(&mut self, ready: &Ready) {
        console::ready(&mut self.console, ready);
        if let Some(metrics) = &mut self.metrics {
            metrics.ready(ready);
        }
        if let Err(failure) = self.service.ready() {
            self.console.warning(&failure.chain());
        }
    }

    /// The capture has ended: with an account, or without one.
    pub fn end(mut self, summary: Option<&Summary>) {
        let warning = self.metrics.take().and_then(|it| it.end(summary));
        self.warn(warning);
        if let Some(summary) = summary {
            console::summary(&mut self.console, summary, self.view.is_some());
        }
    }

    fn warn(&mut self, warning: Option<String>) {
        if let Some(warning) = warning {
            self.console.warning(&warning);
        }
    }
}

fn status(now: &Progress) -> String {
    format!(
        "{} written, {}, fullest ring {:.0} %, clock ±{} ns",
        counted(now.written, "frame"),
        counted(now.drops, "drop"),
        now.ring_fill * 100.0,
        now.host_bound_ns
    )
}
