//! What is checked, each on a machine of its own.

mod attaching;
mod beside;
mod bonds;
pub mod causes;
mod clock;
mod comparison;
mod counters;
mod cpus;
mod delay;
mod devices;
mod directions;
mod doctor;
pub mod filter;
mod hardware;
mod interrupts;
mod kfunc;
mod kmod;
mod merge;
mod modes;
mod offloads;
mod pinning;
mod qos;
pub mod stamp;
mod stamps;
mod unplugged;
mod vlan;

use crate::machine::Rig;

/// A check.
pub type Check = fn(&Rig);

/// Lists checks with their names.
macro_rules! checks {
    ($($module:ident :: $name:ident,)*) => {
        /// All of them, by name.
        pub const ALL: &[(&str, Check)] = &[
            $((concat!(stringify!($module), "::", stringify!($name)), $module::$name),)*
        ];
    };
}

checks![
    attaching::to_nics,
    beside::dropped_frames,
    beside::without_types,
    beside::of_any_length,
    beside::of_several_buffers,
    beside::filtered,
    beside::of_one_of_two_interfaces,
    beside::by_the_module,
    beside::replaced,
    beside::a_dispatcher,
    bonds::of_the_bond,
    bonds::of_the_bond_and_its_port,
    causes::counters_are_the_kernels,
    causes::each_outlier_has_one,
    clock::set_forward,
    clock::set_back,
    clock::slewed,
    counters::of_the_chipset,
    cpus::one_goes_and_comes_back,
    cpus::a_pinned_one_goes,
    cpus::one_comes,
    delay::there_and_back,
    devices::tunnels,
    devices::refused,
    directions::both,
    directions::given_back,
    directions::before_the_driver,
    directions::joined,
    directions::by_another_user,
    doctor::says_what_works,
    filter::in_the_kernel,
    filter::of_a_capture,
    hardware::stamps_within_the_bound,
    hardware::reported_or_set,
    hardware::between_hardware_and_xdp,
    interrupts::not_turned_off_before_6_14,
    kfunc::between_readings_of_the_clock,
    kfunc::ordered_between_readings_of_the_clock,
    kfunc::on_two_cpus,
    kfunc::taken_by_auto,
    kfunc::holds_its_module,
    kfunc::names_what_is_missing,
    kfunc::compared,
    kfunc::sent,
    kfunc::in_frames_sent,
    kmod::loads_and_has_its_kfuncs,
    kmod::refuses_a_tsc_of_varying_rate,
    merge::two_queues_in_order_of_time,
    modes::virtio_natively,
    modes::virtio_generically,
    modes::vmxnet3,
    offloads::given_back,
    pinning::two_interrupts_on_two_cpus,
    pinning::one_interrupt_to_either_cpu,
    pinning::killed_and_restored,
    qos::by_layers,
    stamp::of_a_socket,
    stamp::forwarded_by_fq,
    stamp::send_times,
    stamps::by_default,
    stamps::of_any_snaplen,
    stamps::ktime,
    stamps::tai,
    stamps::tsc,
    unplugged::the_only_interface,
    unplugged::one_of_two,
    vlan::tags_in_line,
    vlan::tags_taken_off,
];
