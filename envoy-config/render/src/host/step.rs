//! The steps on the machine. Each has a reason and a reversal.

/// The steps for one configuration on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The steps in the order in which they are applied. They are undone in reverse order.
    pub steps: Vec<Step>,
    /// Parts that this machine cannot have now.
    pub left_out: Vec<LeftOut>,
}

/// A part that is left out. Everything else works without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The reason.
    pub why: String,
    /// The commands for a machine where the reason is gone.
    pub commands: Vec<Vec<String>>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The reason for the step.
    pub(crate) why: String,
    /// The action.
    pub action: Action,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Sets a kernel setting.
    Sysctl {
        /// The name, as `sysctl` writes it.
        name: String,
        /// The value to set.
        value: String,
        /// The present value.
        before: String,
    },
    /// Runs a command.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// The program and arguments of the command that undoes it.
        undo: Vec<String>,
    },
    /// Loads a rule set with `nft -f`. The rule set first deletes its earlier version.
    Rules {
        /// The table that the rule set makes, as nft writes its family and name.
        table: String,
        /// The rule set.
        rules: String,
    },
    /// Gives a device a queue. The box works without it, so a failure ends nothing.
    Queue {
        /// The programs and their arguments, in order.
        commands: Vec<Vec<String>>,
        /// The program and arguments of the command that undoes all of them.
        undo: Vec<String>,
    },
}
