//! Renders a plan as a shell script.

use super::step::{Action, Plan};

impl Plan {
    /// Returns a script that does the steps of the plan.
    pub fn script(&self, file: &str, interface: &str) -> String {
        let mut out = format!(
            "#!/bin/sh\n\
             # What Longhaul needs on this host for {file}, with clients behind {interface}.\n\
             # `longhaul host {file} --clients {interface} --apply` does the same; `longhaul host --undo` takes it back.\n\
             set -eu\n"
        );
        for step in &self.steps {
            let commands = match &step.action {
                Action::Sysctl { name, value, before } => format!("sysctl -w {name}={} # was {before}", quoted(value)),
                Action::Command { command, .. } => line(command),
                Action::Queue { commands, undo } => {
                    format!(
                        "{}\n# off again: {}",
                        commands.iter().map(|one| line(one)).collect::<Vec<_>>().join("\n"),
                        line(undo)
                    )
                }
                Action::Rules { table, rules } => {
                    format!("nft -f - <<'RULES'\n{rules}RULES\n# off again: nft delete table {table}")
                }
            };
            out.push_str(&["\n# ", &step.why, "\n", &commands, "\n"].concat());
        }
        for part in &self.left_out {
            out.push_str(&["\n# ", &part.why, "\n"].concat());
            out.extend(part.commands.iter().map(|command| format!("# not run: {}\n", line(command))));
        }
        out
    }
}

fn line(command: &[String]) -> String {
    command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"./:_-=%@".contains(&b));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
