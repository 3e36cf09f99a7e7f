// The configurations in deploy/, each for one instance or for two.
import { readFileSync } from 'node:fs'

/** Returns a file of deploy/, changed for two instances as its comment says. */
export function deployed(file: string, instances: 'one' | 'two' = 'one'): string {
  const text = readFileSync(new URL(`../../../deploy/${file}`, import.meta.url), 'utf8')
  if (instances === 'one') return text
  const forTwo = /^.*\n *# For two instances, replace the line above with:\n((?: *# .*\n)+)/m
  return text.replace(forTwo, (_all, lines: string) => lines.replaceAll('# ', ''))
}

/** Returns the file for as many instances as there are ports, with these ports. */
export function deployedFor(file: string, ports: readonly number[]): string {
  const [shipped, text] = ports.length === 1 ? [[8080], deployed(file)] : [[8081, 8082], deployed(file, 'two')]
  return shipped.reduce((all, port, index) => all.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${ports[index]}`), text)
}
