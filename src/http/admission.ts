// What stands between a route and its content, in order; the first step that refuses ends it.
import type { Refusal } from '../contract/errors.ts'
import type { OperationCall, Step } from './call.ts'

/** Not a promise where no step has to wait: a request costs none then. */
export function createAdmission(steps: readonly Step[]): Step {
  const walk = (call: OperationCall, first: number): Refusal | undefined | Promise<Refusal | undefined> => {
    for (let index = first; index < steps.length; index += 1) {
      const verdict = steps[index]!(call)
      if (verdict instanceof Promise) return verdict.then((refusal) => refusal ?? walk(call, index + 1))
      if (verdict !== undefined) return verdict
    }
    return undefined
  }
  return (call) => walk(call, 0)
}
