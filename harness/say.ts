/** Tells whoever waits for a drill or a bench what it is doing. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`)
}
