// A module. It imports its neighbour by a relative URL, which is why modules are not moved.
import { departures } from './timetable.mjs';

document.getElementById('ferry').textContent = departures[0];
