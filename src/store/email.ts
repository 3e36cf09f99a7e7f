// How email addresses are compared, the same way in every engine.

/** Two addresses that differ only in case are one account. */
export function foldEmail(email: string): string {
  return email.toLowerCase()
}
