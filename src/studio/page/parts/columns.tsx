/** A table that scrolls by itself, with the names of its columns. */
import type { ComponentChildren, JSX } from "preact";

/** @param label what the table holds; `numbers`: so many of the last columns hold numbers */
export function Columns({
  label,
  names,
  numbers = 0,
  children,
}: {
  readonly label: string;
  readonly names: readonly string[];
  readonly numbers?: number;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr>
            {names.map((name, at) => (
              <th key={name} scope="col" class={at >= names.length - numbers ? "num" : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
