//! What the head of the file says of machine and interfaces.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedSender;

use super::opened::Opened;
use super::plan::Capture;
use crate::capturing::engine::{Event, Names, Output};
use crate::capturing::filter::LinkType;
use crate::capturing::host::kernel_files::KernelFiles;
use crate::capturing::host::netdev::Link;
use crate::capturing::host::{ethtool, process, system};
use crate::capturing::pcapng::{
    FileWriter, Hooks, InterfaceInfo, InterfaceOption, MOST_FINAL_BYTES, SectionInfo, StampOption,
    VlanTags,
};
use crate::failure::{Context as _, Failure};

pub(super) fn describe(
    plan: &Capture,
    link: &Link,
    hooks: Hooks,
    stamp: StampOption,
    offloads: BTreeMap<String, bool>,
    vlan_tags: VlanTags,
) -> InterfaceInfo {
    let mut tscap = InterfaceOption::new(hooks, stamp, offloads);
    tscap.vlan_tags = Some(vlan_tags);
    let filter = plan.filter.as_ref();
    tscap.filter_compiler = filter.map(|filter| filter.compiler.clone());
    tscap.boot_id = process::boot_id(&KernelFiles::live()).ok();
    let driver = || ethtool::driver(&link.name).map(|driver| driver.name);
    InterfaceInfo {
        name: link.name.clone(),
        description: link.alias.clone().or_else(driver),
        link_type: link.frames().unwrap_or(LinkType::Ethernet),
        mac: link.mac,
        speed: ethtool::speed_bits_per_s(&link.name),
        snaplen: plan.snaplen,
        filter: filter.map(|filter| filter.expression.clone()),
        os: system::os(),
        tscap,
    }
}

pub(super) fn section() -> SectionInfo {
    SectionInfo {
        hardware: system::hardware(),
        os: system::os(),
        application: concat!("tscap ", env!("CARGO_PKG_VERSION")).into(),
    }
}

pub(super) fn write_headers(
    plan: &Capture,
    opened: Opened,
    file: &mut FileWriter,
    tell: &UnboundedSender<Event>,
) -> Result<(Output, Option<(PathBuf, Names)>), Failure> {
    let (mut output, first) = opened
        .start()
        .context(format!("cannot empty {}", plan.target))?;
    let no_room = |failure: Failure| failure.hint("give -w a file where there is room");
    output
        .reserve(MOST_FINAL_BYTES * file.interfaces() as u64)
        .context(format!("cannot keep room for the end of {}", plan.target))
        .map_err(no_room)?;
    if let Err(error) = output.write(&file.take()) {
        if error.is_reader_gone() {
            // Ends the capture as it does at any later time.
            let _ = tell.send(Event::ReaderGone);
            return Ok((output, first));
        }
        // Half a header must not stay.
        let _ = output.truncate_to(0);
        return Err(error)
            .context(format!("cannot write the file header to {}", plan.target))
            .map_err(no_room);
    }
    Ok((output, first))
}
