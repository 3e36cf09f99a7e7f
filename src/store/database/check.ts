// The result of a check by `petstore doctor`, in the same form for every engine.

export interface Check {
  /** What was checked, such as "Disk space". */
  name: string
  /** A warning needs attention, but the service works. */
  state: 'ok' | 'warning' | 'problem'
  found: string
  /** What to do about it; undefined if the state is ok. */
  fix?: string
  /** The words of a command that completes `fix`; `petstore doctor` renders it. */
  command?: readonly string[]
}

/** A fault of a database, and what repairs it. */
export interface Fault {
  found: string
  fix: string
  /** Whether the service works nevertheless. */
  isMinor?: boolean
}

export function faultCheck(name: string, { found, fix, isMinor }: Fault): Check {
  return (isMinor ? warning : problem)(name, found, fix)
}

export function fine(name: string, found: string): Check {
  return { name, state: 'ok', found }
}

export function warning(name: string, found: string, fix: string, ...command: string[]): Check {
  return { name, state: 'warning', found, fix, command }
}

export function problem(name: string, found: string, fix: string, ...command: string[]): Check {
  return { name, state: 'problem', found, fix, command }
}

/** Warns of tables and columns that this program does not know; returns no check if there are none. */
export function unknownChecks(unknown: readonly string[]): Check[] {
  if (unknown.length === 0) return []
  return [
    warning(
      'Tables',
      `this program does not know ${unknown.join(', ')}`,
      'Run doctor, copy and restore of the newer program that made them: those of this one do not see them.',
    ),
  ]
}

/** Warns of missing migrations, which the next start of the service applies. */
export function schemaCheck(lacking: readonly { name: string }[]): Check {
  if (lacking.length === 0) return fine('Schema', 'up to date')
  return warning(
    'Schema',
    `lacks ${lacking.map(({ name }) => name).join(', ')}`,
    'Start the service, which migrates, or run:',
    'migrate',
  )
}
