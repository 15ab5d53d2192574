//! Which frames of a file are seen at the entry, and which at the exit.

use pcap_file::DataLink;

use super::{FileError, FilePlan};
use crate::schema::How;
use crate::sighting::SeenAt;
use tscap_base::text::escaped::escaped;
use tscap_file::accounting::Direction;
use tscap_file::pcapng::Packet;
use tscap_streams::namesakes::by_number;
use tscap_streams::{Described, Survey};

/// Where packets are seen in a file.
#[derive(Clone, Debug)]
pub struct Place {
    /// The interface, as it was asked for.
    pub name: String,
    /// Its numbers in the file: several in a file of several sections.
    pub indices: Vec<usize>,
    /// Which of its frames; `None` for all of them.
    pub direction: Option<Direction>,
    /// Where they were stamped.
    pub hook: String,
}

#[derive(Clone, Debug)]
pub(super) struct Places {
    pub entry: Place,
    pub exit: Place,
    is_mirrored: bool,
}

impl Places {
    pub fn find(
        plan: &FilePlan,
        survey: &Survey,
        warnings: &mut Vec<String>,
    ) -> Result<Self, FileError> {
        let (entry, exit) = match plan.how {
            How::Hooks | How::Reflect => (Some(Direction::In), Some(Direction::Out)),
            How::Rtt | How::Sessions => (Some(Direction::Out), Some(Direction::In)),
            How::Mirror => (None, None),
        };
        let leave = match plan.how {
            How::Hooks => &plan.exit,
            How::Reflect | How::Rtt | How::Sessions | How::Mirror => &plan.entry,
        };
        let mut place = |name, direction| Place::find(plan.how, name, direction, survey, warnings);
        Ok(Self {
            entry: place(&plan.entry, entry)?,
            exit: place(leave, exit)?,
            is_mirrored: plan.how == How::Mirror,
        })
    }

    /// Whether packets enter and leave at one interface.
    pub fn are_one(&self) -> bool {
        self.entry.indices == self.exit.indices
    }

    /// Where a packet is seen.
    pub fn of(&self, packet: &Packet) -> impl Iterator<Item = SeenAt> {
        let is_entry = self.entry.has(packet);
        let is_exit = !self.is_mirrored && self.exit.has(packet);
        let entry = is_entry.then_some(SeenAt::Entry);
        entry.into_iter().chain(is_exit.then_some(SeenAt::Exit(0)))
    }
}

impl Place {
    /// The frames of this direction of an interface, by its name or else its number.
    ///
    /// # Errors
    /// If the file does not have them.
    pub fn find(
        how: How,
        name: &str,
        direction: Option<Direction>,
        survey: &Survey,
        warnings: &mut Vec<String>,
    ) -> Result<Self, FileError> {
        let indices = indices(name, survey)?;
        let name = called(name, &indices, survey);
        let all = || indices.iter().map(|index| &survey.interfaces[*index]);
        if all().any(|it| it.interface.linktype != DataLink::ETHERNET) {
            return Err(FileError::NotEthernet(name));
        }
        let has_directions = all().any(|it| it.sent > 0);
        let mut direction = direction;
        if let Some(wanted) = direction {
            if all().any(|it| !was_captured(it, wanted)) {
                let did = match wanted {
                    Direction::In => "received",
                    Direction::Out => "sent",
                };
                return Err(FileError::NotCaptured { name, did });
            }
            // Another program's, and none of its frames was sent: it may not say which were.
            let is_foreign = all().all(|it| it.interface.tscap.is_none());
            let has_frames = all().any(|it| it.frames > 0);
            if is_foreign && has_frames && !has_directions {
                if how != How::Hooks {
                    return Err(FileError::NoDirections(name));
                }
                if wanted == Direction::Out {
                    warnings.push(format!(
                        "{name}: no frame has a direction (epb_flags): each counts as one that \
                         leaves there, also what came in"
                    ));
                    direction = None;
                }
            }
        }
        let hook = all().find_map(|it| {
            let hooks = &it.interface.tscap.as_ref()?.hooks;
            match direction {
                Some(Direction::Out) => hooks.sent.clone(),
                _ => hooks.received.clone(),
            }
        });
        Ok(Self {
            hook: hook.unwrap_or_else(|| "capture".into()),
            name,
            indices,
            direction,
        })
    }

    /// Whether a packet is seen there.
    pub fn has(&self, packet: &Packet) -> bool {
        self.indices.contains(&(packet.interface as usize))
            && self.direction.is_none_or(|it| it == packet.direction)
    }

    /// What the schema calls it.
    pub fn point(&self) -> &'static str {
        match self.hook.as_str() {
            hook if hook.contains("egress") => "egress",
            hook if hook.contains("XDP") => "xdp",
            _ => "tap",
        }
    }
}

/// Whether tscap captured frames of this direction, as far as the file says it.
fn was_captured(described: &Described, wanted: Direction) -> bool {
    let Some(tscap) = &described.interface.tscap else {
        return true;
    };
    let (wanted, other) = match wanted {
        Direction::In => (&tscap.hooks.received, &tscap.hooks.sent),
        Direction::Out => (&tscap.hooks.sent, &tscap.hooks.received),
    };
    wanted.is_some() || other.is_none()
}

/// The interface of a name, or else that of a number. It is described more than once where the
/// file has several sections.
fn indices(name: &str, survey: &Survey) -> Result<Vec<usize>, FileError> {
    let all = || survey.interfaces.iter().enumerate();
    let named = |name: &str| {
        let named = all().filter(|(_, it)| it.interface.name.as_deref() == Some(name));
        named.map(|(index, _)| index).collect::<Vec<_>>()
    };
    let is_one = |one: usize, other: usize| {
        survey.interfaces[one].is_interface_of(&survey.interfaces[other])
    };
    let of_name = named(name);
    if let Some(first) = of_name.first() {
        if of_name[1..].iter().all(|it| is_one(*first, *it)) {
            return Ok(of_name);
        }
        let has = of_name.iter().map(|index| {
            let it = &survey.interfaces[*index];
            by_number(*index, (&it.interface, it.clock.times()))
        });
        return Err(FileError::SeveralInterfaces {
            name: escaped(name).into_owned(),
            has: has.collect::<Vec<_>>().join("; "),
        });
    }
    let number = name.parse().ok();
    if let Some(number) = number.filter(|it: &usize| *it < survey.interfaces.len()) {
        let name = survey.interfaces[number].interface.name.as_deref();
        let mut indices = name.map(named).unwrap_or_default();
        indices.retain(|it| *it == number || is_one(number, *it));
        return Ok(if indices.is_empty() {
            vec![number]
        } else {
            indices
        });
    }
    let has: Vec<_> = all()
        .map(|(index, it)| {
            it.interface
                .name
                .as_deref()
                .map_or(index.to_string(), |it| escaped(it).into_owned())
        })
        .collect();
    Err(FileError::NoInterface {
        name: escaped(name).into_owned(),
        has: if has.is_empty() {
            "none".into()
        } else {
            has.join(", ")
        },
    })
}

/// What a place is called: by its name, where it was asked for by its number.
fn called(asked: &str, indices: &[usize], survey: &Survey) -> String {
    let interface = indices.first().map(|it| &survey.interfaces[*it].interface);
    let name = interface.and_then(|it| it.name.as_deref());
    match name.filter(|name| *name != asked) {
        Some(name) => format!("{} (interface {asked})", escaped(name)),
        None => escaped(asked).into_owned(),
    }
}
