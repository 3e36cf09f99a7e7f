// The numbered SQL files of an engine, in order. A number is given once and a file never changes after a release.
import { readdirSync, readFileSync } from 'node:fs'

export interface Migration {
  number: number
  name: string
  sql: string
}

export function readMigrations(folder: URL): Migration[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql')).toSorted()
  return files.map((file, index) => {
    const number = Number.parseInt(file, 10)
    if (number !== index + 1) throw new Error(`migration ${file} should have the number ${index + 1}`)
    return { number, name: file.replace('.sql', ''), sql: readFileSync(new URL(file, folder), 'utf8') }
  })
}
