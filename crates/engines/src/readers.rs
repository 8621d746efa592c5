//! What somebody may read who may not launch: everything but secrets.
//!
//! Whoever launches types keys into profiles and reads them again. Whoever only
//! measures and compares has no use for them, so they are masked on the way out.

use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    effective::EffectiveConfiguration,
    profile::{Activation, ProfileSpec},
    secrets::{masked_text, masked_variable, masked_words},
    views::{
        hosts::HostView,
        profiles::{DiffLine, Draft, ProfileCard, ProfileList, ProfileView},
        servers::{LaunchSummary, LaunchView, ServerList},
    },
};

use crate::shell::quote;

/// Something that may hold secrets which were typed here.
pub trait HoldsSecrets {
    /// Masks them.
    fn mask_secrets(&mut self);
}

/// A view as this actor may read it: whole for whoever may launch, with its secrets
/// masked for everybody else.
#[must_use]
pub fn readable_by<T: HoldsSecrets>(actor: &Actor, mut view: T) -> T {
    if authorise(actor, Capability::Launch).is_err() {
        view.mask_secrets();
    }
    view
}

fn mask(text: &mut String) {
    *text = masked_text(text, None);
}

impl<T: HoldsSecrets> HoldsSecrets for Vec<T> {
    fn mask_secrets(&mut self) {
        self.iter_mut().for_each(T::mask_secrets);
    }
}

impl HoldsSecrets for ProfileSpec {
    fn mask_secrets(&mut self) {
        mask(&mut self.program);
        self.arguments = masked_words(&self.arguments);
        for (name, value) in &mut self.environment {
            *value = masked_variable(name, value);
        }
        let parameters = &mut self.parameters;
        mask(&mut parameters.model);
        mask(&mut parameters.served_name);
        parameters.drafter.iter_mut().for_each(mask);
        self.directory.iter_mut().for_each(mask);
        match &mut self.activation {
            Activation::None => {}
            Activation::VirtualEnvironment { path } => mask(path),
            Activation::Script { text } => mask(text),
            Activation::Container {
                image, arguments, ..
            } => {
                mask(image);
                *arguments = masked_words(arguments);
            }
        }
        mask(&mut self.notes);
    }
}

impl HoldsSecrets for ProfileCard {
    fn mask_secrets(&mut self) {
        self.spec.mask_secrets();
        self.command = quote(&self.spec.command());
    }
}

impl HoldsSecrets for ProfileList {
    fn mask_secrets(&mut self) {
        self.profiles.mask_secrets();
    }
}

impl HoldsSecrets for ProfileView {
    fn mask_secrets(&mut self) {
        self.card.mask_secrets();
        for revision in &mut self.revisions {
            mask(&mut revision.notes);
        }
        self.launches.mask_secrets();
    }
}

impl HoldsSecrets for Draft {
    fn mask_secrets(&mut self) {
        self.spec.mask_secrets();
        self.command = quote(&self.spec.command());
        self.left_out.iter_mut().for_each(mask);
    }
}

impl HoldsSecrets for DiffLine {
    fn mask_secrets(&mut self) {
        for side in [&mut self.first, &mut self.second].into_iter().flatten() {
            *side = masked_variable(&self.name, side);
        }
    }
}

impl HoldsSecrets for LaunchSummary {
    fn mask_secrets(&mut self) {
        if let Some(failure) = &mut self.failure {
            mask(&mut failure.detail);
        }
    }
}

impl HoldsSecrets for ServerList {
    fn mask_secrets(&mut self) {
        self.alive.mask_secrets();
        self.over.mask_secrets();
    }
}

impl HoldsSecrets for EffectiveConfiguration {
    fn mask_secrets(&mut self) {
        for item in &mut self.items {
            for side in [&mut item.asked, &mut item.found].into_iter().flatten() {
                *side = masked_variable(&item.name, side);
            }
            item.remark.iter_mut().for_each(mask);
        }
        self.notes.iter_mut().for_each(mask);
    }
}

impl HoldsSecrets for LaunchView {
    fn mask_secrets(&mut self) {
        self.summary.mask_secrets();
        mask(&mut self.command);
        mask(&mut self.stage_text);
        for step in &mut self.steps {
            mask(&mut step.detail);
        }
        if let Some(effective) = &mut self.effective {
            effective.mask_secrets();
        }
        self.remarks.iter_mut().for_each(mask);
    }
}

impl HoldsSecrets for HostView {
    fn mask_secrets(&mut self) {
        self.launches.mask_secrets();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{diff, draft, shell::paste};

    const SECRET: &str = "Zq7wXk2LmN";

    /// A profile with the secret wherever one may be typed.
    fn spec() -> ProfileSpec {
        let text = format!(
            "HF_TOKEN='{SECRET} x' A=1 vllm serve /m --api-key {SECRET} --port 1 --header 'Authorization: Bearer {SECRET}'"
        );
        let mut spec = paste(&text).expect("a command").spec;
        spec.activation = Activation::Script {
            text: format!("export VLLM_API_KEY=\"{SECRET}\""),
        };
        spec
    }

    #[test]
    fn who_may_launch_reads_everything_and_everybody_else_no_secret() {
        let whole = draft(spec(), Vec::new());
        assert_eq!(readable_by(&Actor::LOCAL, whole.clone()), whole);
        for actor in [Actor::NETWORK, Actor::GUEST] {
            let shown = readable_by(&actor, whole.clone());
            let text = serde_json::to_string(&shown).expect("JSON");
            assert!(!text.contains(SECRET), "{text}");
            assert!(shown.command.contains("A=1"), "{}", shown.command);
            assert!(shown.command.contains("--port"), "{}", shown.command);
            assert!(shown.spec.masked().is_some());
        }
    }

    #[test]
    fn a_difference_tells_that_a_secret_changed_and_not_to_what() {
        let mut other = spec();
        for word in &mut other.arguments {
            *word = word.replace(SECRET, "Other9Secret");
        }
        for (_, value) in &mut other.environment {
            *value = value.replace(SECRET, "Other9Secret");
        }
        let lines = readable_by(&Actor::NETWORK, diff(&spec(), &other));
        assert!(lines.len() >= 2, "{lines:?}");
        let text = format!("{lines:?}");
        assert!(!text.contains(SECRET) && !text.contains("Other9"), "{text}");
    }
}
