// Parses the file .env: settings as variables, one a line.
import { parseEnv } from 'node:util'
import { type Setting, SETTINGS } from '../config.ts'

export interface EnvFile {
  variables: NodeJS.Dict<string>
  /** The numbers, from 1, of the lines that are neither NAME=VALUE nor a comment, nor part of a quoted value. */
  ignoredLines: readonly number[]
}

const SETTING_OR_COMMENT = /^\s*(?:#|$|(?:export\s+)?[A-Za-z_]\w*\s*=)/

export function parseEnvFile(text: string): EnvFile {
  // A byte order mark, which editors on Windows write, would become part of the first name.
  const lines = text.replace(/^\uFEFF/, '').split('\n')
  const variables = parseEnv(lines.join('\n'))
  const isIgnored = (index: number) => {
    if (SETTING_OR_COMMENT.test(lines[index]!)) return false
    // A quoted value may span lines. Removing one of its lines would change the value.
    const others = parseEnv(lines.toSpliced(index, 1).join('\n'))
    return Object.entries(others).every(([name, value]) => variables[name] === value)
  }
  return { variables, ignoredLines: [...lines.keys()].filter(isIgnored).map((index) => index + 1) }
}

/** Merges the variables of the file with those of the environment, which win: DATABASE_URL_FILE over DATABASE_URL, too, and vice versa. */
export function mergeVariables(file: NodeJS.Dict<string>, env: NodeJS.Dict<string>): NodeJS.Dict<string> {
  const forms = Object.values<Setting>(SETTINGS).map(({ variable, fileVariable = variable }) => [
    variable,
    fileVariable,
  ])
  const overridden = new Set(forms.filter((names) => names.some((name) => name in env)).flat())
  const kept = Object.entries(file).filter(([name]) => !overridden.has(name))
  return { ...Object.fromEntries(kept), ...env }
}
