// Makes world.txt, the outlines of the world map on the statistics page:
//
//   npm install --no-save world-atlas@2.0.2 topojson-client@3.1.0 topojson-simplify@3.0.3 \
//     d3-geo@3.1.2 i18n-iso-countries@7.14.0
//   node make.mjs > world.txt
//
// Run it in a folder where those packages are installed; it was last run with Node 20.20.2.
// The outlines are Natural Earth's 1:50m countries (public domain, naturalearthdata.com), in the
// Natural Earth projection. Each line of the output is an ISO 3166-1 alpha-2 code (or XK for
// Kosovo), a space and the data of an SVG path. The view box goes to the standard error stream.
//
// A country too small to be seen is drawn as a diamond, which may lie on top of its neighbours.
// So the page should draw long paths before short ones, whatever their order in the file.

import { readFileSync } from 'node:fs';
import { geoNaturalEarth1Raw, geoPath } from 'd3-geo';
import { feature, mergeArcs } from 'topojson-client';
import { presimplify, simplify } from 'topojson-simplify';
import iso from 'i18n-iso-countries';

const WIDTH = 1000; // of the view box; its height follows from the outlines
const MARGIN = 3; // kept free on every side, as room for diamonds
const CENTRE = 11; // the longitude in the middle, so that the edge runs through Bering Strait
const GRID = 2; // steps per unit to which coordinates are rounded
const DETAIL = 1.1; // corners that change an outline by less than this area are left out
const NORTH = 45; // above this line (67 degrees north) corners weigh less, on ragged coasts
const SPECK = 1.2; // islands and holes smaller than this area are left out
const SMALL = 7; // countries with less than this area become a diamond
const RADIUS = 2; // of a diamond
const GAP = 3.2; // the least distance between the centres of two diamonds

// Areas without a number of their own in the data.
const NAMED = { Kosovo: 'XK', 'N. Cyprus': 'CY', Somaliland: 'SO', 'Siachen Glacier': 'IN' };

// Areas that the data counts to one country, and ISO 3166 to another code: from, to, and the
// west, south, east and north of a box around the area.
const MOVED = [
  ['FR', 'GF', -55, 2, -51, 6],
  ['FR', 'GP', -62, 15.8, -61, 16.6],
  ['FR', 'MQ', -61.3, 14.3, -60.7, 15],
  ['FR', 'RE', 55, -22, 56, -20],
  ['FR', 'YT', 45, -13.1, 45.4, -12.6],
  ['NL', 'BQ', -69, 12, -62, 18],
  ['NO', 'SJ', 5, 74, 35, 81],
  ['RU', 'UA', 32, 44, 36.7, 46.4], // Crimea, UA-43 in ISO 3166-2
];

// Territories that the data lacks, or has without a code: longitude and latitude.
const POINTS = { BV: [3.4, -54.4], CC: [96.8, -12.2], CX: [105.6, -10.5], GI: [-5.3, 36.1],
  TK: [-171.8, -9.2], TV: [179.2, -8.5], UM: [166.6, 19.3] };

// A ring of corners as a polygon, to be measured on the plane.
const plane = geoPath();
const polygon = (ring) => ({ type: 'Polygon', coordinates: [[...ring, ring[0]]] });
const area = (ring) => plane.area(polygon(ring));

// Longitudes are counted from the centre of the map, and each is put near the one before it in
// its outline: so no outline jumps from one edge of the map to the other.
const turned = (lon, before) => lon - CENTRE - 360 * Math.round((lon - CENTRE - before) / 360);
const project = ([x, lat]) => geoNaturalEarth1Raw((x * Math.PI) / 180, (-lat * Math.PI) / 180);

// Read the borders, which several countries share. Presimplify makes them plain coordinates.
const file = new URL(import.meta.resolve('world-atlas/countries-50m.json'));
const world = presimplify(JSON.parse(readFileSync(file, 'utf8')));
const index = (arc) => (arc < 0 ? ~arc : arc); // ~arc is the same arc read backwards

// Collect the polygons of each code.
const polygons = {};
for (const { id, type, properties, arcs } of world.objects.countries.geometries) {
  const code = NAMED[properties.name] ?? iso.numericToAlpha2(id ?? '');
  if (!code || code === 'AQ') continue;
  for (const part of type === 'Polygon' ? [arcs] : arcs) {
    const [lon, lat] = world.arcs[index(part[0][0])][0];
    const moved = MOVED.find(([from, , west, south, east, north]) =>
      from === code && lon > west && lat > south && lon < east && lat < north);
    (polygons[moved?.[1] ?? code] ??= []).push(part);
  }
}

// Project the borders and fit them into the view box, which ends at Cape Horn.
for (const arc of world.arcs) for (let i = 0, x = 0; i < arc.length; i++) {
  arc[i] = [(x = turned(arc[i][0], x)), arc[i][1]];
}
const seen = Object.values(polygons).flat(3).flatMap((i) => world.arcs[index(i)])
  .filter(([, lat]) => lat > -56).map(project);
const [[west, north], [east, south]] = plane.bounds({ type: 'MultiPoint', coordinates: seen });
const unit = (WIDTH - 2 * MARGIN) / (east - west);
const place = (at) => project(at).map((n, i) => (n - [west, north][i]) * unit + MARGIN);
const fine = { ...world, bbox: undefined, arcs: world.arcs.map((arc) => arc.map(place)) };
console.error(`0 0 ${WIDTH} ${Math.ceil((south - north) * unit + 2 * MARGIN)}`);

// Simplify each border once for both sides. Small islands keep more of their corners.
const weighed = presimplify(fine);
for (const arc of weighed.arcs) {
  const island = String(arc[0]) === String(arc.at(-1)) && area(arc) < 60;
  for (const p of arc) p[2] *= island ? 4 : p[1] < NORTH ? 0.25 : 1;
}
const coarse = simplify(weighed, DETAIL);

// All rings of some polygons: neighbours are joined, and holes run the other way round.
const merge = (topology, arcs) => mergeArcs(topology, [{ type: 'MultiPolygon', arcs }]);
const rings = (...of) => feature(of[0], merge(...of)).geometry.coordinates.flat();

// A ring in steps of the grid, without the corners that have become needless.
const snap = (point) => point.map((n) => Math.round(n * GRID));
const turn = ([ax, ay], [bx, by], [cx, cy]) => (bx - ax) * (cy - by) - (by - ay) * (cx - bx);
function tidy(ring) {
  for (let kept = ring.map(snap), before; ; ) {
    before = kept.length;
    kept = kept.filter((p, i) => String(p) !== String(kept.at(i - 1)));
    kept = kept.filter((p, i) => turn(kept.at(i - 1), p, kept[(i + 1) % kept.length]) !== 0);
    if (kept.length === before) return kept;
  }
}

// Steps of the grid as path data, with separators only where they are needed.
const write = (numbers) => numbers
  .map((n) => String(n / GRID).replace(/^(-?)0\./, '$1.')).join(' ')
  .replace(/ -/g, '-').replace(/(\.\d+) (?=\.)/g, '$1');
const minus = ([x, y], [u, v]) => [x - u, y - v];

const paths = {};
const dots = Object.entries(POINTS).map(([code, [lon, lat]]) =>
  ({ code, at: place([turned(lon, 0), lat]) }));
for (const [code, arcs] of Object.entries(polygons)) {
  const kept = rings(coarse, arcs).map(tidy)
    .filter((ring) => ring.length > 2 && area(ring) >= SPECK * GRID ** 2);
  if (kept.reduce((sum, ring) => sum + area(ring), 0) < SMALL * GRID ** 2) {
    const largest = rings(fine, arcs).reduce((a, b) => (area(b) > area(a) ? b : a));
    dots.push({ code, at: plane.centroid(polygon(largest)) });
  } else paths[code] = kept.map((ring, i) => {
    const sides = ring.slice(1).flatMap((p, j) => minus(p, ring[j]));
    if (i === 0) return `M${write(ring[0])}l${write(sides)}z`;
    return `m${write([...minus(ring[0], kept[i - 1][0]), ...sides])}z`;
  }).join('');
}

// Push diamonds apart that would hide each other, as in the Caribbean.
for (let round = 0; round < 200; round++) for (const a of dots) for (const b of dots) {
  const [dx, dy] = minus(b.at, a.at);
  const push = a === b ? 0 : Math.max(0, GAP / Math.hypot(dx, dy) - 1) / 4;
  a.at = minus(a.at, [dx * push, dy * push]);
  b.at = minus(b.at, [-dx * push, -dy * push]);
}
const side = write([1, -1, 1, 1, -1, 1].map((n) => n * RADIUS * GRID));
for (const { code, at: [x, y] } of dots) {
  paths[code] = `M${write(snap([x - RADIUS, y]))}l${side}z`;
}
for (const code of Object.keys(paths).sort()) console.log(`${code} ${paths[code]}`);
