//! Driving the screens by keys.
