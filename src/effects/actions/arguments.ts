/** `{uv-name}` in a path or an address: the argument of that name. */
import { own, type Json, type JsonObject } from "../../flow/json.ts";

export type FilledArgument =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "unresolved"; readonly why: string };

/** `encode` puts a value into the form of its place; null: it has none there. */
export function fillArgument(
  template: string,
  args: JsonObject,
  encode: (text: string) => string | null,
): FilledArgument {
  let why: string | null = null;
  const text = template.replaceAll(/\{uv-([^{}]+)\}/g, (written, name: string) => {
    const value = own(args, name);
    const encoded = value === undefined || value === null || value === "" ? null : encode(plain(value));
    if (encoded === null) why ??= `${template} was not checked: there is no usable value for ${written}`;
    return encoded ?? "";
  });
  return why === null ? { kind: "text", text } : { kind: "unresolved", why };
}

function plain(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
