// The file .env: variables, one a line, for those who would rather not set them in the environment.
import { parseEnv } from 'node:util'

export interface EnvFile {
  variables: NodeJS.Dict<string>
  /** The numbers of the lines that are ignored, from 1: no NAME=VALUE, no comment, and not within quotes. */
  ignoredLines: readonly number[]
}

const SETTING_OR_COMMENT = /^\s*(?:#|$|(?:export\s+)?[A-Za-z_]\w*\s*=)/

export function parseEnvFile(text: string): EnvFile {
  // Editors on Windows begin a file with a byte order mark, which would become part of the first name.
  const lines = text.replace(/^\uFEFF/, '').split('\n')
  const variables = parseEnv(lines.join('\n'))
  const isIgnored = (index: number) => {
    if (SETTING_OR_COMMENT.test(lines[index]!)) return false
    // A quoted value may span lines. Without a line of it, it would be another.
    const others = parseEnv(lines.toSpliced(index, 1).join('\n'))
    return Object.entries(others).every(([name, value]) => variables[name] === value)
  }
  return { variables, ignoredLines: [...lines.keys()].filter(isIgnored).map((index) => index + 1) }
}
