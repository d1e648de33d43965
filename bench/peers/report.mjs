// The table and the geometric means of a peer comparison. Ratios are peer / dais: above 1, dais
// is the faster (or the leaner) one.
const ENGINES = ['dais', 'ort'];
const MEASURES = ['bestMs', 'firstMs', 'peakMb'];
const SLOW = 0.8;
const NAME_WIDTH = 46;

function number(value, width) {
  if (value === undefined || !Number.isFinite(value)) return '-'.padStart(width);
  const digits = value >= 100 ? 1 : value >= 1 ? 3 : 4;
  return value.toFixed(digits).padStart(width);
}

/** peer / dais for one of MEASURES, or undefined when one engine did not run. */
function ratio({engines}, measure) {
  if (!engines.dais || !engines.ort) return undefined;
  return engines.ort[measure] / engines.dais[measure];
}

function geometricMean(values) {
  const known = values.filter((value) => value > 0);
  if (!known.length) return undefined;
  return Math.exp(known.reduce((sum, value) => sum + Math.log(value), 0) / known.length);
}

export function printHead({seed, rounds, seconds}) {
  console.log(`seed ${seed}, best median of ${rounds} rounds of ${seconds} s, milliseconds`);
  console.log(['case'.padEnd(NAME_WIDTH), 'thr', ...ENGINES.map((name) => name.padStart(9)),
               'speed'.padStart(7), 'first'.padStart(7), 'memory'.padStart(7),
               'differs'.padStart(9)].join(' '));
}

export function printCase(result) {
  const name = result.case.padEnd(NAME_WIDTH);
  if (result.error) {
    console.log(`${name} ${String(result.threads).padStart(3)} FAILED ${result.error}`);
    return;
  }
  const {ok, difference, note} = result.agreement;
  const times = ENGINES.map((engine) => number(result.engines[engine]?.bestMs, 9));
  const ratios = MEASURES.map((measure) => number(ratio(result, measure), 7));
  console.log([name, String(result.threads).padStart(3), ...times, ...ratios,
               difference.toExponential(1).padStart(9), ok ? note : `WRONG ${note}`].join(' '));
}

function means(results) {
  return {
    cases: results.length,
    speed: geometricMean(results.map((result) => ratio(result, 'bestMs'))),
    first: geometricMean(results.map((result) => ratio(result, 'firstMs'))),
    memory: geometricMean(results.map((result) => ratio(result, 'peakMb'))),
  };
}

function printMeans(label, {cases, speed, first, memory}) {
  console.log(`${label.padEnd(24)} ${String(cases).padStart(4)} cases  speed ${number(speed, 7)}` +
              `  first output ${number(first, 7)}  memory ${number(memory, 7)}`);
}

/** Prints geometric means per kind and thread count; returns them. */
export function printSummary(all) {
  const results = all.filter(({error}) => !error);
  const summary = [];
  for (const threads of [...new Set(results.map((result) => result.threads))]) {
    const here = results.filter((result) => result.threads === threads);
    for (const kind of [...new Set(here.map((result) => result.kind))].sort()) {
      const group = here.filter((result) => result.kind === kind);
      summary.push({threads, kind, ...means(group)});
    }
    summary.push({threads, kind: 'all', ...means(here)});
  }
  console.log('\ngeometric means, peer / dais (above 1: dais is ahead)');
  for (const row of summary) printMeans(`${row.kind}, ${row.threads} thread(s)`, row);
  const slow = results.filter((result) => ratio(result, 'bestMs') < SLOW);
  const wrong = results.filter(({agreement}) => !agreement.ok);
  console.log(`${slow.length} under ${SLOW}x${list(slow)}`);
  console.log(`${wrong.length} disagree${list(wrong)}`);
  console.log(`${all.length - results.length} failed`);
  return summary;
}

function list(results) {
  const names = [...new Set(results.map((result) => result.case))];
  return names.length ? ': ' + names.join(', ') : '';
}
