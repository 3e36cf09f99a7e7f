// Counts the steps of a piece of work: how often V8 ran each block of the code of src/. Unlike a time, it is the same on every machine.
// A test imports it before the code: blocks of a function that has run before are not counted.
import { type Profiler, Session } from 'node:inspector'
import { setFlagsFromString } from 'node:v8'

// Calls of an optimised function are not counted.
for (const flag of ['--no-opt', '--no-maglev']) setFlagsFromString(flag)
const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })

/** Returns how often blocks ran while the work did, such as bodies of loops; `named` counts only the calls of one function. */
export function countedSteps(work: () => unknown, named?: string): number {
  take()
  work()
  const functions = take()
    .filter(({ url }) => url.includes('/src/'))
    .flatMap((script) => script.functions)
  const counted = functions.map(({ functionName, ranges }) => {
    if (named === undefined) return ranges.reduce((sum, { count }) => sum + count, 0)
    return functionName === named ? ranges[0]!.count : 0
  })
  return counted.reduce((sum, count) => sum + count, 0)
}

/** Returns the counts since the last call. */
function take(): Profiler.ScriptCoverage[] {
  let taken: Profiler.ScriptCoverage[] = []
  session.post('Profiler.takePreciseCoverage', (_error, { result }) => (taken = result))
  return taken
}
