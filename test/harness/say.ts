/** Prints the progress of a drill or a bench to standard error. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`)
}
