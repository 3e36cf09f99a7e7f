// The one shape for "a value or a reason why not": a function that may refuse returns its value or a `Refused`.
// Callers test with `instanceof Refused`.

export class Refused {
  /** A whole sentence for whoever asked. */
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** One field of a form or of a body has a bad value; `field` is empty when the whole is meant. */
export class FieldProblem extends Refused {
  readonly field: string
  constructor(field: string, message: string) {
    super(message)
    this.field = field
  }
}

/** Several fields have bad values; at least one. */
export class InvalidFields extends Refused {
  readonly problems: readonly FieldProblem[]
  constructor(problems: readonly FieldProblem[]) {
    super(problems.map(({ message }) => message).join(' '))
    this.problems = problems
  }
}
