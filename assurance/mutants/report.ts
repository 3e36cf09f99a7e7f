// The score of a folder, and the mutants that no test noticed.
import { relative } from 'node:path'

export interface TestedMutant {
  fileName: string
  location: { start: { line: number; column: number } }
  mutatorName: string
  replacement: string
  status: 'Killed' | 'Timeout' | 'Survived' | 'NoCoverage' | 'RuntimeError' | 'CompileError' | 'Ignored' | 'Pending'
}

/** An ignored mutant is not tested, and with one that the test runner failed on it is not known. */
const COUNTED = new Set(['Killed', 'Timeout', 'Survived', 'NoCoverage'])
const NOTICED = new Set(['Killed', 'Timeout'])

export function report(folder: string, tested: readonly TestedMutant[], total: number): string {
  const counted = tested.filter(({ status }) => COUNTED.has(status))
  const missed = counted.filter(({ status }) => !NOTICED.has(status))
  const score =
    counted.length === 0 ? 'no score' : `${Math.floor((100 * (counted.length - missed.length)) / counted.length)} %`
  const numberOf = (asked: TestedMutant['status']) => tested.filter(({ status }) => status === asked).length
  const failed = numberOf('RuntimeError')
  const untested = total - numberOf('Ignored') - failed - counted.length
  const unknown = failed > 0 ? `, ${failed} whose tests did not run as they should` : ''
  // Stryker reports the mutants that no test reaches first, so that the score of a part is too low.
  const rest = untested > 0 ? `, ${untested} not tested in the time, most of them within reach of a test` : ''
  return [
    `\n${folder}: ${score} (${counted.length - missed.length} of ${counted.length} noticed, ${numberOf('Timeout')} by a time limit${unknown}${rest})`,
    ...missed.map(line).toSorted(),
    '',
  ].join('\n')
}

function line({ fileName, location: { start }, mutatorName, replacement, status }: TestedMutant): string {
  const place = `${relative('', fileName)}:${start.line}:${start.column}`
  const untouched = status === 'NoCoverage' ? ' (none of its tests gets there)' : ''
  return `  ${place} ${mutatorName} → ${replacement.replaceAll(/\s+/g, ' ').slice(0, 60)}${untouched}`
}
