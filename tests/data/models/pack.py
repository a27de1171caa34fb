"""Packs folders of small models and their references into cases.zip, without NumPy.
usage: pack.py CASES_FOLDER

Each NAME has its folder as it is, NAME/reference.json, and NAME/reference.safetensors with a part of the reference: the logits of
some positions and some rows of the gradients, all in f64."""
import json, os, struct, sys, zipfile

POSITIONS = {'logits': [0, 9, 20, 31], 'ragged.logits': [5, 12]}
GRADIENT_ROWS = 6
SIZES = {'F64': 8, 'I32': 4}


def read(path):
    raw = open(path, 'rb').read()
    n = int.from_bytes(raw[:8], 'little')
    return {name: (e['dtype'], e['shape'], raw[8 + n + e['data_offsets'][0]:8 + n + e['data_offsets'][1]])
            for name, e in json.loads(raw[8:8 + n]).items() if name != '__metadata__'}


def rows(tensor, axis, chosen):
    """The chosen indices of an axis."""
    dtype, shape, data = tensor
    inner = SIZES[dtype]
    for size in shape[axis + 1:]: inner *= size
    outer = 1
    for size in shape[:axis]: outer *= size
    out = b''.join(data[(o * shape[axis] + i) * inner:(o * shape[axis] + i + 1) * inner] for o in range(outer) for i in chosen)
    return dtype, shape[:axis] + [len(chosen)] + shape[axis + 1:], out


def integers(values):
    return 'I32', [len(values)], struct.pack(f'<{len(values)}i', *values)


def write(tensors):
    header, offset = {}, 0
    ordered = sorted(tensors.items(), key=lambda e: (-SIZES[e[1][0]], e[0]))
    for name, (dtype, shape, data) in ordered:
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    return struct.pack('<Q', len(text)) + text + b''.join(data for _, (_, _, data) in ordered)


def part(reference):
    out = {}
    for name, tensor in reference.items():
        if name in POSITIONS:
            out[name] = rows(tensor, 1, POSITIONS[name])
            out['positions.' + name] = integers(POSITIONS[name])
        elif name.startswith('grad.'):
            # Rows of an embedding by ids that occur, so that lookups have a part in them.
            ids = struct.unpack('<32i', reference['ids'][2][:128])
            chosen = sorted(set(ids))[:GRADIENT_ROWS] if 'embed' in name or 'wte' in name else list(range(GRADIENT_ROWS))
            out[name] = rows(tensor, 0, chosen)
            out['rows.' + name[5:]] = integers(chosen)
        else:
            out[name] = tensor
    return out


if __name__ == '__main__':
    cases = sys.argv[1]
    with zipfile.ZipFile(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'cases.zip'), 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        def add(name, data): out.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
        for name in sorted(f for f in os.listdir(cases) if os.path.isdir(f'{cases}/{f}')):
            for file in sorted(os.listdir(f'{cases}/{name}')): add(f'{name}/{file}', open(f'{cases}/{name}/{file}', 'rb').read())
            add(f'{name}/reference.json', open(f'{cases}/{name}.reference.json', 'rb').read())
            add(f'{name}/reference.safetensors', write(part(read(f'{cases}/{name}.reference.safetensors'))))
