// What stands between a route and its content, in order; the first step that refuses ends it.
import type { Refusal } from '../contract/errors.ts'
import type { Call, Step } from './call.ts'

export type Admit = (call: Call, decided: (refusal: Refusal | undefined) => void, failed: (error: unknown) => void) => void

/** Goes on at once where no step has to wait: a request costs no promise then. */
export function createAdmission(steps: readonly Step[]): Admit {
  const walk = (call: Call, first: number): Refusal | undefined | Promise<Refusal | undefined> => {
    for (let index = first; index < steps.length; index += 1) {
      const verdict = steps[index]!(call)
      if (verdict instanceof Promise) return verdict.then((refusal) => refusal ?? walk(call, index + 1))
      if (verdict !== undefined) return verdict
    }
    return undefined
  }
  return (call, decided, failed) => {
    const verdict = walk(call, 0)
    if (verdict instanceof Promise) verdict.then(decided, failed)
    else decided(verdict)
  }
}
