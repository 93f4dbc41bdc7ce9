//! What a User-Agent header says: browser, system, device and bot.
