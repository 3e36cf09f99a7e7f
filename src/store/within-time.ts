// A bound on a wait.

/** There was no answer in time. Whether what was asked for has happened, or will, is unknown. */
export class Overdue extends Error {
  override name = 'Overdue'
  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`)
  }
}

/** Rejects with `Overdue` if this has not settled in time; what it settles with later is ignored here. */
export function withinTime<T>(promise: Promise<T>, limitMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Overdue(limitMs)), limitMs)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
