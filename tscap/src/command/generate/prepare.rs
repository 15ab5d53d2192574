//! Everything that is checked before a frame is sent, and which sender it is.

use super::stamps::TscStamps;
use crate::command::console::Console;
use crate::command::{Context as _, Failure, Hint as _};
use tscap_capture::interface;
use tscap_cli::{GenPlan, SenderChoice};
use tscap_clock::{NsPerCycle, measure_tsc_rate};
use tscap_filter::LinkType;
use tscap_host::installed::Installed;
use tscap_network::netdev::Link;
use tscap_network::xdp_features;
use tscap_time::tsc;
use tscap_traffic::generator::{Addresses, NativeSender, PacketSender, Sender, Step, Template};

/// The parts of the plan that depend on the machine.
pub(super) struct Machine {
    pub link: Link,
    pub cpu: u32,
    pub sender: Sender,
    /// How the payloads' TSC stamps are read; `None` if they are 0.
    pub tsc: Option<TscStamps>,
    /// Each step with its frames.
    pub steps: Vec<(Step, Template)>,
}

/// Checks the plan against the machine, and opens the sender.
pub(super) fn check(plan: &GenPlan, console: &mut Console) -> Result<Machine, Failure> {
    let link = interface::find_usable(&plan.interface, "send on", &[LinkType::Ethernet])?;
    check_place(&link, plan.anywhere)?;
    let steps = templates(plan, &link)?;
    let cpu = super::super::choose_cpu(plan.cpu, "send from")?;
    let rate = tsc_rate();
    let longest = plan.steps.iter().map(|step| step.size).max().unwrap_or(0);
    let native = match plan.sender {
        SenderChoice::Packet => None,
        SenderChoice::Native => Some(native(plan, &link, longest)?),
        SenderChoice::Auto => match native(plan, &link, longest) {
            Ok(sender) => Some(sender),
            Err(failure) => {
                console.note(&format!(
                    "sending through a packet socket: {}",
                    failure.chain()
                ));
                None
            }
        },
    };
    let (sender, tsc) = match native {
        Some(mut sender) => {
            let read = rate.and_then(|rate| {
                let read = sender.read_tsc(cpu, rate);
                read.context("it cannot be read in XDP")
            });
            let read = read.map_err(|failure| {
                let why = failure.chain();
                console.note(&format!("the frames carry no TSC stamp: {why}"));
            });
            let read = read.map(|(path, bound_ns)| TscStamps::in_xdp(path, bound_ns));
            (Sender::Native(Box::new(sender)), read.ok())
        }
        None => {
            let sender = PacketSender::open(&link.name, link.index, rate?);
            let sender = sender
                .context("cannot send")
                .hint(Installed::find().advice())?;
            (Sender::Packet(sender), Some(TscStamps::IN_USER_SPACE))
        }
    };
    Ok(Machine {
        link,
        cpu,
        sender,
        tsc,
        steps,
    })
}

/// Refuses interfaces behind which somebody else's network may be.
fn check_place(link: &Link, anywhere: bool) -> Result<(), Failure> {
    if anywhere || matches!(link.kind.as_deref(), Some("veth" | "tun")) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "cannot send on {}: it is neither a veth nor a tap interface, so that the frames might \
         reach a real network",
        link.name
    ))
    .hint("--yes-send-here sends there all the same"))
}

fn templates(plan: &GenPlan, link: &Link) -> Result<Vec<(Step, Template)>, Failure> {
    let addresses = Addresses {
        source: plan.source_mac.or(link.mac).unwrap_or_default(),
        destination: plan.destination_mac,
    };
    let template = |step: &Step| {
        let most = link.mtu.saturating_add(plan.layout.link_header());
        if step.size > most {
            return Err(Failure::new(format!(
                "cannot send frames of {} bytes on {}: its MTU of {} lets them have {most}",
                step.size, link.name, link.mtu
            ))
            .hint(format!(
                "ip link set dev {} mtu {}",
                link.name,
                step.size - plan.layout.link_header()
            )));
        }
        let template = Template::new(&plan.layout, addresses, step.size);
        let template = template.context(format!("cannot send on {}", link.name))?;
        Ok((*step, template))
    };
    plan.steps.iter().map(template).collect()
}

fn tsc_rate() -> Result<NsPerCycle, Failure> {
    tsc::check()
        .context("the TSC is no clock here")
        .hint("--sender native needs none")?;
    measure_tsc_rate().ok_or_else(|| {
        Failure::new(
            "cannot measure the rate of the TSC: every reading was interrupted, or it runs at \
             less than 8 MHz",
        )
        .hint("try again when the machine is less busy, or take --sender native")
    })
}

/// A native sender, or why there is none.
fn native(plan: &GenPlan, link: &Link, longest: u32) -> Result<NativeSender, Failure> {
    let name = &link.name;
    if link.kind.as_deref() != Some("veth") {
        return Err(Failure::new(format!(
            "cannot send native frames on {name}: that is for veth interfaces"
        ))
        .hint("--sender packet sends there"));
    }
    let features = xdp_features::of(link.index).context(format!("cannot look at {name}"))?;
    if features.is_some_and(|features| !features.takes_redirects()) {
        return Err(Failure::new(format!(
            "cannot send native frames on {name}: its other end has neither an XDP program nor GRO"
        ))
        .hint("at the other end: ethtool -K NAME gro on, or capture there by tscap"));
    }
    let sender = NativeSender::open(name, link.index, plan.layout.payload_at(), longest as usize);
    sender
        .context(format!("cannot send native frames on {name}"))
        .hint("--sender packet needs no more than CAP_NET_RAW")
}
