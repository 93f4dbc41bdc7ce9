//! Webhooks: signatures, the addresses that they may reach, and their delivery.
