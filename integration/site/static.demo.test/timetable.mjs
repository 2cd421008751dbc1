export const departures = ['18:40 to Eastness', '21:05 to the mainland'];
