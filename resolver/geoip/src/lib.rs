//! Where an address is: country, region, city and coordinates, from files in MaxMind DB format.
