/**
 * Words that bash itself evaluates although they are quoted: `test -v 'a[$(x)]'` runs x. A list of commands that holds such
 * a built-in is kept from meaning any command. Reads commands that `simpleCommands` gave.
 */

/** Why the built-in would evaluate what it is given; null: it would not, or the command is not such a built-in. */
export function evaluates(command: string): string | null {
  if (isPlainlyOther(command)) return null;
  const [program, ...words] = wordsOf(command);
  if (program === undefined) return null;
  if (program.text === "printf") return evaluatedByPrintf(words);
  if (!EVALUATING.has(program.text)) return null;
  const subscript = words.find(({ text }) => SUBSCRIPT.test(text));
  if (subscript !== undefined)
    return `bash evaluates the subscript in ${shown(subscript.text)} when ${program.text} gets it, quoted or not`;
  const open = words.find(({ isOpen }) => isOpen);
  if (open !== undefined)
    return `${shown(open.text)} may become a subscript that bash evaluates when ${program.text} gets it`;
  return null;
}

/** Most commands begin with a plain word, and then that word is the program. */
function isPlainlyOther(command: string): boolean {
  const program = /^[\w./-]+(?= |$)/.exec(command)?.[0];
  return program !== undefined && program !== "printf" && !EVALUATING.has(program);
}

/** Options come first, so that what stands behind the format is only printed. */
function evaluatedByPrintf([first]: readonly Word[]): string | null {
  if (first === undefined) return null;
  if (first.text.startsWith("-v"))
    return "printf -v sets a variable, and bash evaluates the subscript in its name";
  return first.isOpen ? `${shown(first.text)} may become the option -v of printf` : null;
}

/** Built-ins that take names of variables, arithmetic or conditions. */
const EVALUATING: ReadonlySet<string> = new Set(
  "test [ [[ read unset declare typeset local export readonly let wait mapfile readarray getopts".split(" "),
);

const SUBSCRIPT = /\[[^]*(?:\$[({[]|`)/;

type Word = {
  /** Without its quotes. */
  readonly text: string;
  /** A pattern, a list in braces or `$_`: what it becomes can be chosen by names of files or by the command before. */
  readonly isOpen: boolean;
};

function wordsOf(command: string): readonly Word[] {
  const words: Word[] = [];
  let text: string | null = null;
  let isOpen = false;
  const end = () => {
    // The brackets of `[` and `[[` are no patterns.
    if (text !== null) words.push({ text, isOpen: isOpen && !/^\[{1,2}$|^\]{1,2}$/.test(text) });
    text = null;
    isOpen = false;
  };
  for (let index = 0; index < command.length; index += 1) {
    const char = command[index]!;
    if (char === " ") end();
    else if (char === "'") {
      const close = command.indexOf("'", index + 1);
      text = (text ?? "") + command.slice(index + 1, close);
      index = close;
    } else if (char === '"') {
      text ??= "";
      for (index += 1; index < command.length && command[index] !== '"'; index += 1) {
        if (command[index] === "\\" && /["\\$`]/.test(command[index + 1] ?? "")) index += 1;
        else if (command.startsWith("$_", index)) isOpen = true;
        text += command[index] ?? "";
      }
    } else if (char === "\\") {
      index += 1;
      text = (text ?? "") + (command[index] ?? "");
    } else {
      if (/[*?[{]/.test(char) || command.startsWith("$_", index)) isOpen = true;
      text = (text ?? "") + char;
    }
  }
  end();
  return words;
}

function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
