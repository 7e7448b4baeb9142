# The modules that the interpreter needs, in one file: a sandbox takes seconds to look for eight hundred of them in directories. What
# is compiled to machine code stays where it is.
#
# Run as a program when the image is made, it writes that file.

import importlib.machinery
import marshal
import mmap
import os
import sys

FILE = '/usr/local/lib/berth-code/modules.bin'


class Modules:
    def __init__(self, kept, code):
        self.kept, self.code = kept, code

    def find_spec(self, name, path=None, target=None):
        if name not in self.kept:
            return None
        file, is_package, *_ = self.kept[name]
        spec = importlib.machinery.ModuleSpec(name, self, origin=file, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(file)]
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name):
        _, _, begin, end = self.kept[name]
        return marshal.loads(self.code[begin:end])

    def get_filename(self, name):
        return self.kept[name][0]

    def is_package(self, name):
        return self.kept[name][1]

    def get_source(self, name):
        with open(self.kept[name][0], encoding='utf8') as file:
            return file.read()

    def get_data(self, path):
        with open(path, 'rb') as file:
            return file.read()


def use():
    try:
        with open(FILE, 'rb') as file:
            # Not read into memory, which each process forked from this one might copy.
            code = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        size = int.from_bytes(code[:8], 'little')
        kept = marshal.loads(code[8 : 8 + size])
    except (OSError, ValueError, EOFError, TypeError):
        return
    sys.meta_path.insert(0, Modules(kept, code[8 + size :]))


def write():
    sys.path.insert(0, os.path.dirname(FILE))
    import python_kernels  # noqa: F401
    import jupyter_client.asynchronous  # noqa: F401
    import jupyter_client.connect  # noqa: F401

    kept, code, end = {}, [], 0
    for name, module in list(sys.modules.items()):
        spec = getattr(module, '__spec__', None)
        if spec is None or spec.name != name or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            continue
        # Ours may be replaced, and those that begin every program are there before.
        if os.path.dirname(spec.origin) == os.path.dirname(FILE) or name.split('.')[0] in ('encodings', 'importlib', 'site', 'os'):
            continue
        code.append(marshal.dumps(spec.loader.get_code(name)))
        begin, end = end, end + len(code[-1])
        kept[name] = (spec.origin, spec.submodule_search_locations is not None, begin, end)
    index = marshal.dumps(kept)
    with open(FILE, 'wb') as file:
        file.write(len(index).to_bytes(8, 'little') + index + b''.join(code))


if __name__ == '__main__':
    write()
