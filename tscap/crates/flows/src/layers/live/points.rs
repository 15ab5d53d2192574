//! The programs of a measurement at their layers.

use std::path::PathBuf;

use tokio::task::yield_now;
use tscap_common::hook::{Direction, Slot};

use super::LivePlan;
use super::hardware::Hardware;
use crate::layers::schema::MissingLayer;
use tscap_base::failure::Failure;
use tscap_base::kernel_files::KernelFiles;
use tscap_capture::PtpClocks;
use tscap_capture::interface::find_usable;
use tscap_filter::LinkType;
use tscap_host::cgroup;
use tscap_live::Scope;
use tscap_live::settings::{JournalFolder, SettingsGuard};
use tscap_network::netdev::Link;
use tscap_programs::hook::{Attacher, Layer, LayerAttacher, LayerError, LayerPoint, Loaded, Port};
use tscap_session::{Points, by_filter};

/// The task, in errors.
const TASK: &str = "measure at";
const KINDS: [LinkType; 1] = [LinkType::Ethernet];

/// The interface of a measurement, looked up.
pub(super) struct Interface {
    link: Link,
    scope: Scope,
    cgroup: Option<PathBuf>,
}

impl Interface {
    /// Looks it up.
    ///
    /// # Errors
    /// If it is not there, is down or is no Ethernet interface.
    pub fn find(plan: &LivePlan) -> Result<Self, Failure> {
        let scope = Scope::open(plan.namespace.as_ref(), "measure")?;
        let link = scope.visit(|| find_usable(&plan.interface, TASK, &KINDS))??;
        let cgroup = plan.cgroup.clone();
        Ok(Self {
            link,
            scope,
            cgroup: cgroup.or_else(|| cgroup::root(&KernelFiles::live())),
        })
    }

    /// What it is called, with its namespace.
    pub fn label(&self) -> String {
        self.scope.name_of(&self.link.name)
    }
}

/// All programs of a measurement, in the order of their layers; they are detached on drop.
pub(super) struct LayerPoints {
    pub all: Vec<LayerPoint>,
    pub absent: Vec<MissingLayer>,
    /// The layer before them, if it can be had.
    pub hardware: Option<Hardware>,
    /// Index among those that are measured of each layer that was asked for.
    pub layers: Vec<Option<usize>>,
    changes: SettingsGuard,
    is_elsewhere: bool,
}

impl LayerPoints {
    /// Attaches the programs of `loaded`, the last layer first: a packet that is seen at one
    /// meets the programs of those behind it.
    ///
    /// # Errors
    /// If fewer than two layers can be had. Nothing stays attached then.
    pub async fn attach(
        plan: &LivePlan,
        interface: &Interface,
        loaded: &Loaded,
        clocks: &mut PtpClocks,
    ) -> Result<Self, Failure> {
        let mut changes = SettingsGuard::new(JournalFolder::live(), KernelFiles::live());
        let (mut all, mut absent) = (Vec::new(), Vec::new());
        let mut found = vec![false; plan.layers.len()];
        let mut hardware = match plan.layers.first() {
            Some(Layer::Hw) => {
                let find = || Hardware::find(&interface.link, clocks);
                Some(interface.scope.visit(find)?)
            }
            _ => None,
        };
        for (number, layer) in plan.layers.iter().copied().enumerate().rev() {
            if layer == Layer::Hw {
                continue;
            }
            let attached = interface.scope.visit(|| {
                let by_filter = &mut by_filter(&mut changes);
                let attacher = Attacher { loaded, by_filter };
                attach_layer(interface, (number as u32, layer), attacher, &mut hardware)
            })?;
            // A request to end is noticed here.
            yield_now().await;
            match attached {
                Ok(point) => {
                    found[number] = true;
                    all.push(point);
                }
                Err(error) => absent.push(MissingLayer {
                    layer,
                    why: error.says(),
                }),
            }
        }
        let hardware = match hardware {
            Some(Ok(hardware)) => Some(hardware),
            Some(Err(why)) => {
                let layer = Layer::Hw;
                absent.push(MissingLayer { layer, why });
                None
            }
            None => None,
        };
        if hardware.is_some() {
            found[0] = true;
        }
        all.reverse();
        absent.reverse();
        if all.len() + usize::from(hardware.is_some()) < 2 {
            return Err(too_few(&all, &absent));
        }
        let mut next = 0..;
        let layers = found
            .into_iter()
            .map(|is_found| if is_found { next.next() } else { None });
        Ok(Self {
            all,
            absent,
            hardware,
            layers: layers.collect(),
            changes,
            is_elsewhere: interface.scope.is_elsewhere(),
        })
    }

    /// The layers that are measured.
    pub fn measured(&self) -> Vec<Layer> {
        let hardware = self.hardware.iter().map(|_| Layer::Hw);
        hardware
            .chain(self.all.iter().map(|point| point.layer))
            .collect()
    }

    /// Of the programs, in the order of their layers.
    pub fn slots(&self) -> Vec<Slot> {
        let numbers = (0..).zip(&self.layers);
        let measured = numbers.filter(|(_, layer)| layer.is_some());
        measured
            .skip(usize::from(self.hardware.is_some()))
            .map(|(number, _)| Slot::of(number, Direction::In))
            .collect()
    }
}

impl Points for LayerPoints {
    fn is_gone(&self) -> bool {
        self.all.iter().any(LayerPoint::is_gone)
    }

    /// The first layer first.
    fn close(&self) {
        for point in &self.all {
            // An interface that is gone has no program.
            let _ = point.detach();
        }
    }

    fn changes(&mut self) -> (Option<&mut SettingsGuard>, bool) {
        (Some(&mut self.changes), self.is_elsewhere)
    }
}

fn too_few(all: &[LayerPoint], absent: &[MissingLayer]) -> Failure {
    let why: Vec<_> = absent
        .iter()
        .map(|it| format!("{}: {}", it.layer, it.why))
        .collect();
    let what = match all {
        [] => "cannot measure: no layer can be had".to_owned(),
        [one, ..] => format!("cannot measure: only the layer {} can be had", one.layer),
    };
    Failure::new(format!("{what} ({})", why.join("; "))).hint("--layers needs two at least")
}

/// Attaches the program of a layer, which becomes interface `number`. That at XDP reads
/// hardware stamps too where there is `hardware`, which becomes the reason where it can't.
fn attach_layer(
    interface: &Interface,
    (number, layer): (u32, Layer),
    attacher: Attacher<'_, '_>,
    hardware: &mut Option<Result<Hardware, String>>,
) -> Result<LayerPoint, LayerError> {
    let port = Port {
        link: &interface.link,
        number,
        filter: None,
    };
    let mut attacher = LayerAttacher {
        attacher,
        cgroup: interface.cgroup.as_deref(),
    };
    if layer == Layer::Xdp && matches!(hardware, Some(Ok(_))) {
        match attacher.attach(Layer::Hw, &port) {
            Ok(point) => return Ok(point),
            Err(error) => *hardware = Some(Err(error.says())),
        }
    }
    attacher.attach(layer, &port)
}
