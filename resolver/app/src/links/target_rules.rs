//! Use cases of the target rules: the hosts that links may lead to. For operators only.

use links::{api_key::Grant, targets::TargetRule};

use crate::{AppError, LinkService, authorize::require_operator};

impl LinkService {
    /// Returns all rules.
    pub async fn target_rules(&self, by: &Grant) -> Result<Vec<TargetRule>, AppError> {
        require_operator(by)?;
        Ok(self.store.poll_settings(None).await?.settings.unwrap_or_default().targets)
    }

    /// Adds a rule, or changes what its pattern allows.
    pub async fn set_target_rule(&self, rule: &TargetRule, by: &Grant) -> Result<(), AppError> {
        require_operator(by)?;
        let _turn = self.turns.writes.take(by.id).await?;
        self.store.set_target(rule, by.id).await?;
        self.domain_cache.show().await;
        Ok(())
    }

    /// Removes the rule with this pattern.
    pub async fn remove_target_rule(&self, pattern: &str, by: &Grant) -> Result<(), AppError> {
        require_operator(by)?;
        let missing = || AppError::NoTarget(pattern.to_owned());
        let rule = TargetRule::parse(pattern, false).map_err(|_| missing())?;
        let _turn = self.turns.writes.take(by.id).await?;
        if !self.store.remove_target(rule.pattern(), by.id).await? {
            return Err(missing());
        }
        self.domain_cache.show().await;
        Ok(())
    }
}
